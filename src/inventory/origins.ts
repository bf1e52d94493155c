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

/** Which of them; null is any. */
export type OriginFilter = { readonly [name in keyof Origin]: string | null };

/**
 * The origins that the filters allow, of all that events have. Each present resource has one, too: its newest event's.
 * @returns null where they don't narrow a list: nothing is filtered, there are more than `most`, or they aren't known.
 */
export async function originsOf(db: Queryable, filter: OriginFilter, most: number): Promise<Origin[] | null> {
  const { platform, cloud, resourceType } = filter;
  if (platform === null && cloud === null && resourceType === null) return null;
  const found: { readonly [name in keyof Origin]: string | null }[] = await db`
    SELECT platform, cloud, resource_type AS "resourceType"
      FROM event_origins(${platform}::text, ${cloud}::text, ${resourceType}::text) LIMIT ${most + 1}::int`;
  if (found.length > most) return null;
  const origins = found.filter((origin): origin is Origin => origin.cloud !== null);
  return origins.length < found.length ? null : origins;
}

/** The clouds and the types of resources where something can be; null is anywhere. */
export interface Places {
  readonly clouds: readonly string[] | null;
  readonly types: readonly string[] | null;
}

/** Where living resources that the filters allow are in a state, or once were: up to `most` clouds and types. */
export async function placesInState(
  db: Queryable,
  state: string,
  { cloud, resourceType }: Omit<OriginFilter, "platform">,
  most: number,
): Promise<Places> {
  const [found]: { clouds: string; types: string }[] = await db`
    WITH place AS MATERIALIZED (
      SELECT cloud, resource_type FROM places_in_state(${state}::text)
       WHERE cloud IS NULL
          OR (coalesce(${cloud}::text, cloud) = cloud AND coalesce(${resourceType}::text, resource_type) = resource_type))
    SELECT to_json(ARRAY(SELECT DISTINCT cloud FROM place LIMIT ${most + 1}::int))::text AS clouds,
           to_json(ARRAY(SELECT DISTINCT resource_type FROM place LIMIT ${most + 1}::int))::text AS types`;
  const few = (text: string | undefined): string[] | null => {
    const names: (string | null)[] = JSON.parse(text ?? "[null]");
    const known = names.filter((name) => name !== null);
    return names.length > most || known.length < names.length ? null : known;
  };
  return { clouds: few(found?.clouds), types: few(found?.types) };
}
