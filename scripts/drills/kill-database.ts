import { killDrill } from "./killing.ts";

export const killDatabase = killDrill(
  "kill-database",
  "kill -9 of the embedded PostgreSQL under load: Tally ends, is restarted, recovers",
  "database",
);
