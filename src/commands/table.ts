/** Tables for a terminal. */

/** A column; numbers read best to the right. */
export type Column = string | { readonly title: string; readonly align: "right" };

/** How texts are set off, where the terminal can. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
}

/** For files, pipes and people who set NO_COLOR. */
export const PLAIN: Style = { bold: (text) => text, dim: (text) => text };

/** For terminals. */
const ANSI: Style = {
  bold: (text) => `\u001b[1m${text}\u001b[22m`,
  dim: (text) => `\u001b[2m${text}\u001b[22m`,
};

/** The style for a stream: plain unless it is a terminal and NO_COLOR is unset or empty. */
export function styleFor(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  return stream.isTTY === true && (env.NO_COLOR ?? "") === "" ? ANSI : PLAIN;
}

/** What came from outside must not move the cursor or ring the bell: control characters are spelled out. */
function printable(cell: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return cell.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/**
 * Lines of equal columns, two spaces apart, under their titles. Widths are those that a terminal shows: wide
 * characters count two.
 * @param rows one cell a column; a missing one is empty
 * @returns the lines, without a newline at the end
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  style: Style = PLAIN,
): string {
  const titles = columns.map((column) => (typeof column === "string" ? column : column.title));
  const cells = rows.map((row) => titles.map((_, at) => printable(row[at] ?? "")));
  const widths = titles.map((title, at) =>
    Math.max(Bun.stringWidth(title), ...cells.map((row) => Bun.stringWidth(row[at] ?? ""))),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => {
        const padding = " ".repeat((widths[at] ?? 0) - Bun.stringWidth(cell));
        return typeof columns[at] === "object" ? padding + cell : cell + padding;
      })
      .join("  ")
      .trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  return [style.bold(line(titles)), style.dim(rule), ...cells.map(line)].join("\n");
}
