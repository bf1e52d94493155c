/** tally config */

import type { Command } from "commander";
import { explainSettings } from "../settings.ts";
import { print } from "./print.ts";
import { renderTable, styleFor } from "./table.ts";

export function registerConfig(program: Command): void {
  program
    .command("config")
    .description("print every setting, its value (secrets masked) and where it came from")
    .action(() => {
      const { lines } = explainSettings(process.env);
      const cells = lines.map(({ name, value, source }) => [name, value, source]);
      print(renderTable(["SETTING", "VALUE", "FROM"], cells, styleFor(process.stdout, process.env)));
    });
}
