/** Prints the README's table of settings: `bun scripts/settings-table.ts`. A test holds the README against it. */
import { SETTING_DOCUMENTS } from "../src/settings.ts";

/** The table in Markdown, in the order of `src/settings.ts`, laid out as the formatter does. */
export function settingsTable(): string {
  const rows = SETTING_DOCUMENTS.map(({ name, takes, unset, about, fromFile }) => [
    `\`${name}\`${fromFile ? ", `_FILE`" : ""}`,
    // What stands in parentheses is told, not typed.
    /^\(.*\)$/.test(unset) ? unset.slice(1, -1) : `\`${unset}\``,
    takes.replaceAll("|", "\\|"),
    about.replaceAll("|", "\\|"),
  ]);
  const titles = ["variable", "default", "takes", "meaning"];
  const widths = titles.map((_, at) => Math.max(...[titles, ...rows].map((row) => (row[at] ?? "").length)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(titles), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

if (import.meta.main) console.log(settingsTable());
