/** What the steps of a run over a large cloud leave behind. */

/** A smaller cloud's garbage isn't worth a pause. */
const WORTH_COLLECTING = 20_000;

/**
 * Collects the garbage of a step that went over so many resources, before that of the next one comes on top of it:
 * tens of megabytes, for a pause of some ten milliseconds.
 */
export function collectBehind(resources: number): void {
  if (resources >= WORTH_COLLECTING) Bun.gc(true);
}
