/** What the read side's tests share: events as their texts, and answers as values. */
import type { TestServer } from "../support/server.ts";

/** One event to send; what a test doesn't care about has a value already. */
export interface Sent {
  id: string;
  at: string;
  type?: string;
  cloud?: string;
  resourceType?: string;
  resource?: string;
  project?: string;
  /** JSON text; null sends no payload at all. */
  payload?: string | null;
}

/** The item's JSON text, its payload digit for digit. */
export function itemText(event: Sent): string {
  const { id, at, type = "thing.update", cloud = "eu1", resourceType = "thing", resource = "r1" } = event;
  const { project = "p1", payload = '{"state":"on","size":{"n":1}}' } = event;
  const members = {
    event_id: id,
    timestamp: at,
    event_type: type,
    platform: "openstack",
    cloud,
    resource_type: resourceType,
    resource_id: resource,
    project_id: project,
  };
  const text = JSON.stringify(members);
  return payload === null ? text : `${text.slice(0, -1)},"payload":${payload}}`;
}

/** Sends events of one cloud as its collector, and expects all of them to be stored. */
export async function send(server: TestServer, events: readonly Sent[]): Promise<void> {
  const cloud = events[0]?.cloud ?? "eu1";
  const token = await server.credentials.ingest("openstack", cloud);
  const body = `[${events.map(itemText).join(",")}]`;
  const answer = await server.request("/api/v1/events", { method: "POST", token, body });
  const outcome = await answer.text();
  if (outcome !== `{"accepted":${events.length},"duplicates":0,"rejected":[]}`) throw new Error(outcome);
}

/** Registers a project and makes a token of it. */
export async function projectToken(
  server: TestServer,
  ...pairs: readonly (readonly [cloud: string, externalId: string])[]
): Promise<string> {
  const ids: string[] = [];
  for (const [cloud, externalId] of pairs) {
    const [row]: { id: string }[] = await server.db.db`
      INSERT INTO projects (platform, cloud, external_id) VALUES ('openstack', ${cloud}, ${externalId})
      ON CONFLICT (cloud, external_id) DO UPDATE SET platform = EXCLUDED.platform RETURNING id::text AS id`;
    if (row !== undefined) ids.push(row.id);
  }
  return await server.credentials.project(ids);
}

type Json = Record<string, unknown>;

/** One page, its items as objects. */
export interface ReadPage {
  readonly items: Json[];
  readonly next_cursor: string | null;
}

/** Reads a page and expects a 200. */
export async function readPage(
  server: TestServer,
  path: string,
  token = server.credentials.admin,
): Promise<ReadPage> {
  const answer = await server.request(path, { token });
  const page: unknown = await answer.json();
  if (answer.status !== 200 || !isPage(page)) throw new Error(`${path}: ${JSON.stringify(page)}`);
  return page;
}

function isPage(value: unknown): value is ReadPage {
  return typeof value === "object" && value !== null && "items" in value && Array.isArray(value.items);
}

/** One member of each item of a page. */
export async function column(
  server: TestServer,
  path: string,
  member: string,
  token?: string,
): Promise<unknown[]> {
  return (await readPage(server, path, token)).items.map((item) => item[member]);
}

/** The status and the body's text of a GET. */
export async function get(
  server: TestServer,
  path: string,
  token = server.credentials.admin,
): Promise<{ status: number; text: string }> {
  const answer = await server.request(path, { token });
  return { status: answer.status, text: await answer.text() };
}

/** Where the faults of a refused request lie. */
export async function faults(server: TestServer, path: string): Promise<unknown> {
  const answer = await server.request(path, { token: server.credentials.admin });
  const problem: unknown = await answer.json();
  const errors = typeof problem === "object" && problem !== null && "errors" in problem ? problem.errors : [];
  if (!Array.isArray(errors)) throw new Error(JSON.stringify(problem));
  return { status: answer.status, locs: errors.map((error: { loc: string }) => error.loc) };
}
