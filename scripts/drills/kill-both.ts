import { killDrill } from "./killing.ts";

export const killBoth = killDrill(
  "kill-both",
  "kill -9 of Tally and its PostgreSQL together: nobody is left to end in order; what the kernel has is kept",
  "both",
);
