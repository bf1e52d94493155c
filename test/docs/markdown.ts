/** Reading the documentation, so that tests can hold it against the code. */

/** The text of a file at the repository's root or below. */
export async function page(path: string): Promise<string> {
  return await Bun.file(new URL(`../../${path}`, import.meta.url)).text();
}

/** A cell without the backticks around it. */
function plain(cell: string): string {
  const text = cell.trim();
  return /^`[^`]+`$/.test(text) ? text.slice(1, -1) : text;
}

/** The rows of every table of the text whose first header is `first`, without header and rule. */
export function rowsUnder(text: string, first: string): string[][] {
  const rows: string[][] = [];
  let inside = false;
  for (const line of text.split("\n")) {
    if (!line.startsWith("|")) inside = false;
    else if (!inside) inside = plain(line.split("|")[1] ?? "") === first;
    else if (!/^\|[ |-]+$/.test(line)) rows.push(line.split("|").slice(1, -1).map(plain));
  }
  return rows;
}

/** The first fenced block of a language after `mark`. */
export function blockAfter(text: string, mark: string, language: string): string {
  const fence = `\`\`\`${language}\n`;
  const start = text.indexOf(fence, text.indexOf(mark));
  if (start === -1) throw new Error(`no ${language} block after ${mark}`);
  return text.slice(start + fence.length, text.indexOf("\n```", start + fence.length));
}
