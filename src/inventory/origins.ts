/**
 * Where events come from, and where resources are in which state. Those are few places, so that a list may be read from
 * those that its filters allow: what lies before, between and behind isn't gone through.
 */
import type { Queryable } from "../database/connection.ts";

/** A type of resource in a cloud of a platform. */
export interface Origin {
  readonly platform: string;
  readonly cloud: string;
  readonly resourceType: string;
}

/** Of more than so many they aren't listed: each is a step along an index. */
const MOST_LISTED = 250;

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
    SELECT platform, cloud, resource_type AS "resourceType" FROM event_origins(${MOST_LISTED + 1}::int)`;
  if (all.length > MOST_LISTED) return null;
  const allowed = all.filter((origin) => names.every((name) => origin[name] === filter[name]));
  // Where none are listed nothing is known: a table in many parts doesn't list them.
  return allowed.length === all.length ? null : allowed;
}

/** A type of resource in a cloud. */
export type Place = Pick<Origin, "cloud" | "resourceType">;

/**
 * Where living resources are in a state, or once were.
 * @returns null where that isn't known, or in too many places.
 */
export async function placesInState(db: Queryable, state: string): Promise<Place[] | null> {
  const found: { readonly [name in keyof Place]: string | null }[] = await db`
    SELECT cloud, resource_type AS "resourceType" FROM places_in_state(${state}::text) LIMIT ${MOST_LISTED + 1}::int`;
  if (found.length > MOST_LISTED) return null;
  const places: Place[] = [];
  for (const { cloud, resourceType } of found) {
    if (cloud === null || resourceType === null) return null;
    places.push({ cloud, resourceType });
  }
  return places;
}
