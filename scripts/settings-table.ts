/** Prints the README's table of settings: `bun scripts/settings-table.ts`. A test holds the README against it. */
import { SETTING_DOCUMENTS } from "../src/settings.ts";

/** The table in Markdown, in the order of `src/settings.ts`. */
export function settingsTable(): string {
  const cell = (text: string) => text.replaceAll("|", "\\|");
  const rows = SETTING_DOCUMENTS.map(({ name, takes, unset, about, fromFile }) => {
    const twin = fromFile ? ", `_FILE`" : "";
    return `| \`${name}\`${twin} | ${/^\(.*\)$/.test(unset) ? unset.slice(1, -1) : `\`${unset}\``} | ${cell(takes)} | ${cell(about)} |`;
  });
  return ["| variable | default | takes | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

if (import.meta.main) console.log(settingsTable());
