/**
 * Where events come from. An installation has few origins, so that a list may be read from those that its filters
 * allow: what the others wrote before, between and behind isn't gone through.
 */
import type { Queryable } from "../database/connection.ts";

/** A type of resource in a cloud of a platform. */
export interface Origin {
  readonly platform: string;
  readonly cloud: string;
  readonly resourceType: string;
}

/** Of an installation with more origins they aren't listed: each is a step along an index. */
const MOST_ORIGINS = 250;

/**
 * The origins that the filters allow, of all that events have. Each present resource has one, too: its newest event's.
 * @returns null where they don't narrow a list: the filters allow all of them, or there are too many to be listed.
 */
export async function originsOf(
  db: Queryable,
  filter: { readonly [name in keyof Origin]: string | null },
): Promise<Origin[] | null> {
  const names = (["platform", "cloud", "resourceType"] as const).filter((name) => filter[name] !== null);
  if (names.length === 0) return null;
  const all: Origin[] = await db`
    SELECT platform, cloud, resource_type AS "resourceType" FROM event_origins(${MOST_ORIGINS + 1}::int)`;
  if (all.length > MOST_ORIGINS) return null;
  const allowed = all.filter((origin) => names.every((name) => origin[name] === filter[name]));
  // Where none are listed nothing is known: a table in many parts doesn't list them.
  return allowed.length === all.length ? null : allowed;
}
