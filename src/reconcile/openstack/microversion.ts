/** Which version of an API is spoken: the services that have microversions tell their range at their root. */
import { isJsonObject, type JsonObject, textOf } from "./item.ts";
import type { Session } from "./session.ts";

/** A range of microversions, as the service told it. */
export interface Range {
  readonly least: string;
  readonly most: string;
}

/**
 * Asks a service for its range.
 * @param endpoint its address in the catalog; the project's id behind the version is left out
 * @returns null where it has none, or keeps its root to itself
 * @throws {ServiceFailure} when there is no answer
 */
export async function microversions(session: Session, endpoint: URL): Promise<Range | null> {
  const root = new URL(endpoint);
  root.pathname = `${root.pathname.replace(/(\/v\d+(?:\.\d+)?)(?:\/.*)?$/, "$1")}/`;
  const { ask, answer } = await session.get(root);
  if (answer.status === 403 || answer.status === 404) return null;
  // Where several versions are listed, the status is 300.
  if (answer.status !== 200 && answer.status !== 300) throw session.transport.refusal(ask, answer);
  const body = session.transport.json(ask, answer);
  const wanted = /\/v(\d+)(?:\.\d+)?\/$/.exec(root.pathname)?.[1] ?? "";
  const listed: unknown[] = Array.isArray(body.versions) ? body.versions : [body.version];
  const version = listed
    .filter(isJsonObject)
    .findLast((one) => (textOf(one, "id") ?? "").startsWith(`v${wanted}`) && most(one) !== null);
  const highest = version === undefined ? null : most(version);
  if (version === undefined || highest === null) return null;
  return { least: textOf(version, "min_version") ?? highest, most: highest };
}

function most(version: JsonObject): string | null {
  // Cinder and nova say `version`; newer services say `max_version`.
  return textOf(version, "version") ?? textOf(version, "max_version");
}

/** The version to ask for: `wanted`, where the service speaks it, else a later least one; null: none is asked for. */
export function negotiated(range: Range | null, wanted: string): string | null {
  if (range === null || compare(range.most, wanted) < 0) return null;
  return compare(range.least, wanted) > 0 ? range.least : wanted;
}

function compare(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}
