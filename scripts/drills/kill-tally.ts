import { killDrill } from "./killing.ts";

export const killTally = killDrill("kill-tally", "kill -9 of Tally under load, restart, send again", "tally");
