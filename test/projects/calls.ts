/** What the registry's tests share: calls whose answers are looked at whole. */
import type { TestServer } from "../support/server.ts";

/** An answer, read. */
export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly location: string | null;
}

/** Calls as administrator, or with another token; a body is JSON text. */
export async function call(
  server: TestServer,
  method: string,
  path: string,
  body?: string,
  token: string = server.credentials.admin,
): Promise<Answered> {
  const answer = await server.request(path, { method, token, ...(body === undefined ? {} : { body }) });
  return { status: answer.status, text: await answer.text(), location: answer.headers.get("location") };
}

/** The status of a refusal, and the places of its faults. */
export function refusalOf({ status, text }: Answered): { status: number; type: string; locs: string[] } {
  const problem: { type: string; errors?: { loc: string; msg: string }[] } = JSON.parse(text);
  return {
    status,
    type: problem.type.replace("urn:tally:error:", ""),
    locs: (problem.errors ?? []).map(({ loc }) => loc),
  };
}

/** Registers a project; gives its id. */
export async function project(server: TestServer, externalId: string, cloud = "eu1"): Promise<string> {
  const body = JSON.stringify({ platform: "openstack", cloud, external_id: externalId });
  const answer = await call(server, "POST", "/api/v1/projects", body);
  if (answer.status !== 201) throw new Error(answer.text);
  return idOf(answer);
}

/** Relates two projects; gives the relation's id. */
export async function relation(
  server: TestServer,
  source: string,
  target: string,
  more: Record<string, unknown> = {},
): Promise<string> {
  const body = JSON.stringify({ target_id: target, relation_type: "member_of", ...more });
  const answer = await call(server, "POST", `/api/v1/projects/${source}/relations`, body);
  if (answer.status !== 201) throw new Error(answer.text);
  return idOf(answer);
}

export function idOf({ text }: Answered): string {
  return String(JSON.parse(text).id);
}

/** The audit rows of one object: action, actor, details. */
export async function auditOf(
  server: TestServer,
  objectId: string,
): Promise<{ actor: string; action: string; object_type: string; details: Record<string, unknown> }[]> {
  const rows = await server.db.db`
    SELECT actor, action, object_type, details::text AS details FROM audit_log
     WHERE object_id = ${objectId} ORDER BY id`;
  return rows.map((row: { actor: string; action: string; object_type: string; details: string }) => ({
    ...row,
    details: JSON.parse(row.details),
  }));
}

/** How many audit rows there are. */
export async function auditCount(server: TestServer): Promise<number> {
  const [row]: { n: number }[] = await server.db.db`SELECT count(*)::int AS n FROM audit_log`;
  return row?.n ?? -1;
}

/** The id of the administrator's token: the actor of what it does. */
export async function adminId(server: TestServer): Promise<string> {
  const [row]: { id: string }[] = await server.db
    .db`SELECT id::text AS id FROM api_tokens WHERE role = 'admin'`;
  return row?.id ?? "";
}
