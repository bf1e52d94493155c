import { killDrill } from "./killing.ts";

export const killBoth = killDrill(
  "kill-both",
  "kill -9 of Tally and its PostgreSQL together, as a power cut does it",
  "both",
);
