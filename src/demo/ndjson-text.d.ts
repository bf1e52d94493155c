/** `import text from "./x.ndjson" with { type: "text" }`: the file's text, bundled into the executable. */
declare module "*.ndjson" {
  const text: string;
  export default text;
}
