/** Every drill, in the order in which they are run. */
import { backendsTerminated } from "./backends-terminated.ts";
import { clock } from "./clock.ts";
import { contention } from "./contention.ts";
import { databaseDown } from "./database-down.ts";
import { databaseRestart } from "./database-restart.ts";
import { diskFull } from "./disk-full.ts";
import type { Drill } from "./drill.ts";
import { hostileClients } from "./hostile-clients.ts";
import { killBoth } from "./kill-both.ts";
import { killDatabase } from "./kill-database.ts";
import { killTally } from "./kill-tally.ts";
import { migrations } from "./migrations.ts";
import { networkClients } from "./network-clients.ts";
import { networkDatabase } from "./network-database.ts";
import { readOnly } from "./read-only.ts";
import { upgrade } from "./upgrade.ts";

export const DRILLS: readonly Drill[] = [
  killTally,
  killDatabase,
  killBoth,
  databaseRestart,
  backendsTerminated,
  databaseDown,
  readOnly,
  networkDatabase,
  networkClients,
  diskFull,
  contention,
  migrations,
  hostileClients,
  clock,
  upgrade,
];

/** @throws {Error} for a name that no drill has */
export function drillNamed(name: string): Drill {
  const found = DRILLS.find((drill) => drill.name === name);
  if (found === undefined)
    throw new Error(`there is no drill ${name}: there are ${DRILLS.map((d) => d.name).join(", ")}`);
  return found;
}
