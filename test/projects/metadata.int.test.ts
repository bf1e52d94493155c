/** The bound of metadata, to the byte: of projects and relations, made and changed, measured as the database writes it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { type Answered, auditCount, call, project, refusalOf, relation } from "./calls.ts";

const BOUND = 65_536;

let server: TestServer;
let source: string;
let target: string;
let related: string;
beforeAll(async () => {
  server = await testServer();
  source = await project(server, "source");
  target = await project(server, "target");
  related = await relation(server, source, target);
});
afterAll(() => server.stop());

/** A document in two texts: as it is sent, and as the database writes it, with so many bytes over the bound. */
interface Form {
  readonly name: string;
  given(over: number): string;
  written(over: number): string;
}

const x = (count: number) => "x".repeat(count);

const FORMS: readonly Form[] = [
  {
    // {"a": "…"}: nine bytes around the value, one of them the database's own.
    name: "sent without spaces",
    given: (over) => `{"a":"${x(65_527 + over)}"}`,
    written: (over) => `{"a": "${x(65_527 + over)}"}`,
  },
  {
    name: "sent with spaces, tabs and line breaks",
    given: (over) => `{${" ".repeat(70_000)}\t"a"\r\n:\n"${x(65_527 + over)}"${" ".repeat(7)}}`,
    written: (over) => `{"a": "${x(65_527 + over)}"}`,
  },
  {
    // 16 bytes around, and 301 digits.
    name: "with a positive exponent",
    given: (over) => `{"a":1e300,"b":"${x(65_219 + over)}"}`,
    written: (over) => `{"a": 1${"0".repeat(300)}, "b": "${x(65_219 + over)}"}`,
  },
  {
    // 16 bytes around, and 0. with 302 digits behind it.
    name: "with a negative exponent",
    given: (over) => `{"a":1.50e-300,"b":"${x(65_216 + over)}"}`,
    written: (over) => `{"a": 0.${"0".repeat(299)}150, "b": "${x(65_216 + over)}"}`,
  },
  {
    // Six bytes a letter as it is sent, one as it is written.
    name: "with letters sent as escapes",
    given: (over) => `{"a":"${"\\u0078".repeat(65_527 + over)}"}`,
    written: (over) => `{"a": "${x(65_527 + over)}"}`,
  },
  {
    // 10,000 of six bytes each that become two, and 7,000 that keep their six.
    name: "with control characters",
    given: (over) => `{"a":"${"\\u000a".repeat(10_000)}${"\\u0001".repeat(7_000)}${x(3_527 + over)}"}`,
    written: (over) => `{"a": "${"\\n".repeat(10_000)}${"\\u0001".repeat(7_000)}${x(3_527 + over)}"}`,
  },
  {
    // Twelve bytes each that become four.
    name: "with emoji sent as escapes",
    given: (over) => `{"a":"${"\\ud83d\\ude00".repeat(16_381)}${x(3 + over)}"}`,
    written: (over) => `{"a": "${"😀".repeat(16_381)}${x(3 + over)}"}`,
  },
  {
    name: "with a member that a later one replaces",
    given: (over) => `{"a":"${x(70_000)}","a":"${x(65_527 + over)}"}`,
    written: (over) => `{"a": "${x(65_527 + over)}"}`,
  },
];

let made = 0;
/** Each way that metadata comes in. */
const WAYS: readonly {
  readonly name: string;
  readonly taken: number;
  send(metadata: string): Promise<Answered>;
}[] = [
  {
    name: "a new project",
    taken: 201,
    send: (metadata) =>
      call(
        server,
        "POST",
        "/api/v1/projects",
        `{"platform":"openstack","cloud":"eu1","external_id":"p${++made}","metadata":${metadata}}`,
      ),
  },
  {
    name: "a project's change",
    taken: 200,
    send: (metadata) => call(server, "PATCH", `/api/v1/projects/${source}`, `{"metadata":${metadata}}`),
  },
  {
    name: "a new relation",
    taken: 201,
    send: (metadata) =>
      call(
        server,
        "POST",
        `/api/v1/projects/${source}/relations`,
        `{"target_id":"${target}","relation_type":"t${++made}","metadata":${metadata}}`,
      ),
  },
  {
    name: "a relation's change",
    taken: 200,
    send: (metadata) =>
      call(server, "PATCH", `/api/v1/projects/${source}/relations/${related}`, `{"metadata":${metadata}}`),
  },
];

/** All that is stored of projects and relations, in short. */
async function stored(): Promise<string> {
  const [row]: { hash: string }[] = await server.db.db`
    SELECT md5((SELECT string_agg(p::text, '' ORDER BY id) FROM projects p)
            || (SELECT string_agg(r::text, '' ORDER BY id) FROM project_relations r)) AS hash`;
  return row?.hash ?? "";
}

describe.each(WAYS)("$name", ({ send, taken }) => {
  test.each(FORMS)("$name: 65,536 bytes are taken, one more is a 422", async ({ given, written }) => {
    expect([0, 1].map((over) => Buffer.byteLength(written(over)))).toEqual([BOUND, BOUND + 1]);
    const answer = await send(given(0));
    expect(answer.status).toBe(taken);
    expect(answer.text.includes(`,"metadata":${written(0)},"created_at":`)).toBeTrue();

    const [before, audited] = [await stored(), await auditCount(server)];
    const refusal = await send(given(1));
    expect(refusalOf(refusal)).toEqual({ status: 422, type: "validation", locs: ["body.metadata"] });
    expect(await stored()).toBe(before);
    expect(await auditCount(server)).toBe(audited);
  });
});
