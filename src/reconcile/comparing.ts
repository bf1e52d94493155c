/** A cloud as it was seen, against its record, which is read in pages. */
import type { Queryable } from "../database/connection.ts";
import { keyOf } from "../projection/queries.ts";
import type { ConfiguredCloud } from "./adapter.ts";
import { Comparison, type ComparisonRules, type Difference } from "./diff.ts";
import type { ObservedResources, SeenResource } from "./observed.ts";
import { livingPage, rowsOf } from "./recorded.ts";

/** Rows that are compared at once. */
const PAGE_ROWS = 2_000;
/** Observed resources that are looked up at once. */
const LOOKUP_KEYS = 1_000;

/**
 * Compares. The pages are not of one moment: what moves meanwhile is found out when its correction is booked.
 * @param observed is emptied on the way
 * @throws the signal's reason when it aborts, and what the database throws
 */
export async function compareWithRecord(
  db: Queryable,
  { cloud, platform, adapter }: ConfiguredCloud,
  observed: ObservedResources,
  rules: Omit<ComparisonRules, "platform">,
  signal: AbortSignal,
): Promise<Difference> {
  const comparison = new Comparison(observed, { ...rules, platform });
  for (const resourceType of adapter.resourceTypes) {
    let after = "";
    for (;;) {
      signal.throwIfAborted();
      const rows = await livingPage(db, cloud, resourceType, after, PAGE_ROWS);
      for (const row of rows) comparison.living(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE_ROWS) break;
      after = last.resourceId;
    }
  }
  for (const some of chunks(comparison.takeRest(), LOOKUP_KEYS)) {
    signal.throwIfAborted();
    const rows = new Map((await rowsOf(db, cloud, some)).map((row) => [keyOf(row), row]));
    for (const resource of some) comparison.known(resource, rows.get(keyOf(resource)) ?? null);
  }
  return comparison.finish();
}

function* chunks(resources: Iterable<SeenResource>, size: number): Generator<SeenResource[]> {
  let some: SeenResource[] = [];
  for (const resource of resources) {
    some.push(resource);
    if (some.length < size) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}
