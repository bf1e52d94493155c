/** Relations: made, listed at an instant, changed, closed. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Instant, parseInstant } from "../../src/event/instant.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { adminId, auditCount, auditOf, call, idOf, project, refusalOf, relation } from "./calls.ts";

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const NOON = "2026-03-10T12:00:00Z";
const GOOD = { type: "discount", rate: "0.15", scope: "all" };
const AT = "body.metadata.pricing_adjustments";

function instant(text: string): Instant {
  const value = parseInstant(text);
  if (typeof value === "string") throw new Error(value);
  return value;
}

let server: TestServer;
/** The server's clock. */
let clock = instant(NOON);
let a: string;
let b: string;
let c: string;
beforeAll(async () => {
  server = await testServer({ now: () => clock });
});
afterAll(() => server.stop());
let made = 0;
/** Three projects that nothing relates yet. */
beforeEach(async () => {
  clock = instant(NOON);
  made++;
  [a, b, c] = [
    await project(server, `a${made}`),
    await project(server, `b${made}`),
    await project(server, `c${made}`),
  ];
});

const post = (source: string, body: string) =>
  call(server, "POST", `/api/v1/projects/${source}/relations`, body);
const patch = (source: string, id: string, body: string) =>
  call(server, "PATCH", `/api/v1/projects/${source}/relations/${id}`, body);
const close = (source: string, id: string) =>
  call(server, "DELETE", `/api/v1/projects/${source}/relations/${id}`);
const list = async (of: string, query = ""): Promise<Record<string, unknown>[]> => {
  const answer = await call(server, "GET", `/api/v1/projects/${of}/relations${query}`);
  if (answer.status !== 200) throw new Error(answer.text);
  return JSON.parse(answer.text).items;
};
const ids = async (of: string, query = "") => (await list(of, query)).map(({ id }) => id);

describe("making one", () => {
  test("answers the relation and where it is, and audits it", async () => {
    const answer = await post(
      a,
      `{"target_id":"${b.toUpperCase()}","relation_type":"of any kind ü","valid_from":"2026-03-01T02:00:00.1234567+02:00","metadata":{"n":0.10}}`,
    );
    expect(answer.status).toBe(201);
    const id = idOf(answer);
    expect(answer.text).toBe(
      `{"id":"${id}","source_id":"${a}","target_id":"${b}","relation_type":"of any kind ü","valid_from":"2026-03-01T00:00:00.123456Z","valid_to":null,"metadata":{"n": 0.10},"created_at":"${NOON}"}`,
    );
    expect(answer.location).toBe(`/api/v1/projects/${a}/relations/${id}`);
    expect(await list(a)).toEqual([JSON.parse(answer.text)]);
    expect(await auditOf(server, id)).toEqual([
      {
        actor: await adminId(server),
        action: "project_relation.create",
        object_type: "project_relation",
        details: {
          source_id: a,
          target_id: b,
          relation_type: "of any kind ü",
          valid_from: "2026-03-01T00:00:00.123456Z",
          metadata: '{"n": 0.10}',
        },
      },
    ]);
  });

  test("holds from when it is written, with no metadata, where nothing else is said", async () => {
    const { text } = await post(a, JSON.stringify({ target_id: b, relation_type: "member_of" }));
    expect(JSON.parse(text)).toMatchObject({
      valid_from: NOON,
      valid_to: null,
      metadata: {},
      created_at: NOON,
    });
  });

  test("the open triple is a 409; another type, the other direction and another target are not", async () => {
    await relation(server, a, b);
    const before = await auditCount(server);
    const again = await post(
      a,
      JSON.stringify({ target_id: b, relation_type: "member_of", valid_from: "2030-01-01T00:00:00Z" }),
    );
    expect(refusalOf(again)).toEqual({ status: 409, type: "conflict", locs: [] });
    expect(await auditCount(server)).toBe(before);
    await relation(server, a, b, { relation_type: "managed_by" });
    await relation(server, b, a);
    await relation(server, a, c);
    expect(await list(a)).toHaveLength(4);
  });

  test("after a close it is made anew, and both are kept", async () => {
    const first = await relation(server, a, b);
    clock = instant("2026-03-11T00:00:00Z");
    expect((await close(a, first)).status).toBe(204);
    clock = instant("2026-03-12T00:00:00Z");
    const second = await relation(server, a, b);
    expect(await ids(a, "?at=2026-03-10T18:00:00Z")).toEqual([first]);
    expect(await ids(a, "?at=2026-03-11T12:00:00Z")).toEqual([]);
    expect(await ids(a)).toEqual([second]);
  });

  test("of twenty that make one triple at once, one does", async () => {
    const body = JSON.stringify({ target_id: b, relation_type: "member_of" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(a, body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)]);
  });

  test("an unknown source is a 404, an unknown target and the source itself are 422", async () => {
    const body = (target: string) => JSON.stringify({ target_id: target, relation_type: "member_of" });
    expect(refusalOf(await post(UNKNOWN, body(b)))).toEqual({ status: 404, type: "not_found", locs: [] });
    const refused = { status: 422, type: "validation", locs: ["body.target_id"] };
    expect(refusalOf(await post(a, body(UNKNOWN)))).toEqual(refused);
    expect(refusalOf(await post(a, body(a)))).toEqual(refused);
    expect(refusalOf(await post(a, body(a.toUpperCase())))).toEqual(refused);
    expect(await list(a)).toEqual([]);
  });

  test.each([
    ["target_id missing", '{"relation_type":"t"}', ["body.target_id"]],
    ["target_id null", '{"target_id":null,"relation_type":"t"}', ["body.target_id"]],
    ["target_id no UUID", '{"target_id":"x","relation_type":"t"}', ["body.target_id"]],
    ["target_id with a newline", `{"target_id":"${UNKNOWN}\\n","relation_type":"t"}`, ["body.target_id"]],
    ["relation_type missing", `{"target_id":"${UNKNOWN}"}`, ["body.relation_type"]],
    ["relation_type a number", `{"target_id":"${UNKNOWN}","relation_type":1}`, ["body.relation_type"]],
    ["relation_type empty", `{"target_id":"${UNKNOWN}","relation_type":""}`, ["body.relation_type"]],
    [
      "relation_type of 513 bytes",
      `{"target_id":"${UNKNOWN}","relation_type":"a${"ü".repeat(256)}"}`,
      ["body.relation_type"],
    ],
    [
      "relation_type with NUL",
      `{"target_id":"${UNKNOWN}","relation_type":"\\u0000"}`,
      ["body.relation_type"],
    ],
    [
      "valid_from null",
      `{"target_id":"${UNKNOWN}","relation_type":"t","valid_from":null}`,
      ["body.valid_from"],
    ],
    [
      "valid_from a date",
      `{"target_id":"${UNKNOWN}","relation_type":"t","valid_from":"2026-03-01"}`,
      ["body.valid_from"],
    ],
    [
      "valid_from without offset",
      `{"target_id":"${UNKNOWN}","relation_type":"t","valid_from":"2026-03-01T00:00:00"}`,
      ["body.valid_from"],
    ],
    [
      "valid_from a number",
      `{"target_id":"${UNKNOWN}","relation_type":"t","valid_from":0}`,
      ["body.valid_from"],
    ],
    ["metadata null", `{"target_id":"${UNKNOWN}","relation_type":"t","metadata":null}`, ["body.metadata"]],
    ["metadata a list", `{"target_id":"${UNKNOWN}","relation_type":"t","metadata":[]}`, ["body.metadata"]],
    [
      "metadata with NUL",
      `{"target_id":"${UNKNOWN}","relation_type":"t","metadata":{"pricing_adjustments":["\\u0000"]}}`,
      ["body.metadata"],
    ],
    [
      "valid_to",
      `{"target_id":"${UNKNOWN}","relation_type":"t","valid_to":"2026-03-01T00:00:00Z"}`,
      ["body.valid_to"],
    ],
    [
      "source_id",
      `{"target_id":"${UNKNOWN}","relation_type":"t","source_id":"${UNKNOWN}"}`,
      ["body.source_id"],
    ],
    ["a list", "[]", ["body"]],
    ["nothing", "", ["body"]],
  ])("%s: 400", async (_, body, locs) => {
    const before = await auditCount(server);
    expect(refusalOf(await post(a, body))).toEqual({ status: 400, type: "validation", locs });
    expect(await auditCount(server)).toBe(before);
  });

  test("512 bytes of type, and instants at both ends of time", async () => {
    const id = await relation(server, a, b, {
      relation_type: "ü".repeat(256),
      valid_from: "0001-01-01T00:00:00Z",
    });
    const [only] = await list(a, "?at=0001-01-01T00:00:00Z");
    expect(only).toMatchObject({ id, valid_from: "0001-01-01T00:00:00Z" });
    const late = await relation(server, a, b, { valid_from: "9999-12-31T23:59:59.999999Z" });
    expect(await ids(a, "?at=9999-12-31T23:59:59.999999Z")).toEqual([id, late].sort());
  });
});

describe("pricing adjustments", () => {
  const make = (adjustments: unknown) =>
    post(
      a,
      JSON.stringify({ target_id: b, relation_type: "t", metadata: { pricing_adjustments: adjustments } }),
    );

  test("are stored as they come, 64 of them", async () => {
    const answer = await make(Array(64).fill(GOOD));
    expect(answer.status).toBe(201);
    expect(JSON.parse(answer.text).metadata.pricing_adjustments).toEqual(Array(64).fill(GOOD));
  });

  test("each violation is told at its place: 422, and nothing is stored", async () => {
    const before = await auditCount(server);
    const answer = await make([
      GOOD,
      { type: "rebate", rate: 0.1, scope: "All" },
      { type: "discount", rate: "1.5", scope: "all", description: "x".repeat(501), note: 1 },
      { scope: "all" },
      "discount",
    ]);
    const { locs, ...problem } = refusalOf(answer);
    expect(problem).toEqual({ status: 422, type: "validation" });
    expect(locs.sort()).toEqual([
      `${AT}.1.rate`,
      `${AT}.1.scope`,
      `${AT}.1.type`,
      `${AT}.2.description`,
      `${AT}.2.note`,
      `${AT}.2.rate`,
      `${AT}.3.rate`,
      `${AT}.3.type`,
      `${AT}.4`,
    ]);
    expect(await list(a)).toEqual([]);
    expect(await auditCount(server)).toBe(before);
  });

  test.each([
    ["65", Array(65).fill(GOOD)],
    ["none", []],
    ["null", null],
    ["an object", GOOD],
    ["a text", "10 %"],
  ])("%s: one violation, of the array", async (_, adjustments) => {
    expect(refusalOf(await make(adjustments))).toEqual({ status: 422, type: "validation", locs: [AT] });
  });

  test.each(["metadata", "met\\u0061data"])(
    "of doubled metadata, %s the second, the last is judged and stored, nothing else",
    async (second) => {
      const good = JSON.stringify({ pricing_adjustments: [GOOD] });
      const bad = '{"pricing_adjustments":[{"type":"discount","rate":"2","scope":"all"}]}';
      const doubled = (first: string, last: string) =>
        post(a, `{"target_id":"${b}","relation_type":"t","metadata":${first},"${second}":${last}}`);
      expect(refusalOf(await doubled(good, bad)).locs).toEqual([`${AT}.0.rate`]);
      const answer = await doubled(bad, good);
      expect(JSON.parse(answer.text).metadata).toEqual({ pricing_adjustments: [GOOD] });
    },
  );

  test("every violation of a full array is told", async () => {
    expect(refusalOf(await make(Array(64).fill({}))).locs).toHaveLength(192);
  });

  test("metadata past its bound is a 422 at metadata", async () => {
    const body = JSON.stringify({ target_id: b, relation_type: "t", metadata: { a: "x".repeat(65_528) } });
    expect(refusalOf(await post(a, body))).toEqual({
      status: 422,
      type: "validation",
      locs: ["body.metadata"],
    });
    expect(await list(a)).toEqual([]);
  });
});

describe("listing", () => {
  test("valid_from counts, valid_to doesn't", async () => {
    const id = await relation(server, a, b, { valid_from: "2026-03-01T00:00:00Z" });
    await patch(a, id, '{"valid_to":"2026-04-01T00:00:00Z"}');
    for (const [at, expected] of [
      ["2026-02-28T23:59:59.999999Z", []],
      ["2026-03-01T00:00:00Z", [id]],
      ["2026-03-01T00:00:00.000001Z", [id]],
      ["2026-03-31T23:59:59.999999Z", [id]],
      ["2026-04-01T00:00:00Z", []],
      ["2026-04-01T00:00:00.000001Z", []],
      ["2026-03-31T23:00:00-01:00", []],
      ["2026-04-01T01:59:59%2B02:00", [id]],
    ] as const) {
      expect(await ids(a, `?at=${at}`), at).toEqual([...expected]);
    }
  });

  test("at is now where it isn't said", async () => {
    const id = await relation(server, a, b, { valid_from: "2026-03-10T12:00:00.000001Z" });
    expect(await ids(a)).toEqual([]);
    clock = instant("2026-03-10T12:00:00.000001Z");
    expect(await ids(a)).toEqual([id]);
  });

  test("directions, types, and the order", async () => {
    const ab = await relation(server, a, b);
    clock = instant("2026-03-10T12:00:01Z");
    const ca = await relation(server, c, a, { relation_type: "managed_by" });
    clock = instant("2026-03-10T12:00:02Z");
    const ac = await relation(server, a, c, { valid_from: NOON });
    expect(await ids(a)).toEqual([ab, ca, ac]);
    expect(await ids(a, "?direction=both")).toEqual([ab, ca, ac]);
    expect(await ids(a, "?direction=outgoing")).toEqual([ab, ac]);
    expect(await ids(a, "?direction=incoming")).toEqual([ca]);
    expect(await ids(a, "?relation_type=member_of")).toEqual([ab, ac]);
    expect(await ids(a, "?relation_type=managed_by&direction=outgoing")).toEqual([]);
    expect(await ids(b)).toEqual([ab]);
    expect(await ids(b, "?direction=outgoing")).toEqual([]);
  });

  test("relations of one instant are ordered by id", async () => {
    const several = [
      await relation(server, a, b),
      await relation(server, a, c),
      await relation(server, b, a),
      await relation(server, c, a),
    ];
    expect(await ids(a)).toEqual(several.sort());
  });

  test("of an unknown project: 404", async () => {
    const answer = await call(server, "GET", `/api/v1/projects/${UNKNOWN}/relations`);
    expect(refusalOf(answer)).toEqual({ status: 404, type: "not_found", locs: [] });
  });

  test.each([
    ["?direction=", "query.direction"],
    ["?direction=up", "query.direction"],
    ["?direction=both&direction=both", "query.direction"],
    ["?relation_type=", "query.relation_type"],
    ["?relation_type=%00", "query.relation_type"],
    [`?relation_type=${"a".repeat(513)}`, "query.relation_type"],
    ["?relation_type=a&relation_type=b", "query.relation_type"],
    ["?at=", "query.at"],
    ["?at=now", "query.at"],
    ["?at=2026-03-01", "query.at"],
    ["?at=2026-03-01T00:00:00", "query.at"],
    ["?at=2026-02-29T00:00:00Z", "query.at"],
    [`?at=${NOON}&at=${NOON}`, "query.at"],
    ["?limit=1", "query.limit"],
    ["?type=member_of", "query.type"],
  ])("%s: 400", async (query, loc) => {
    const answer = await call(server, "GET", `/api/v1/projects/${a}/relations${query}`);
    expect(refusalOf(answer)).toEqual({ status: 400, type: "validation", locs: [loc] });
  });

  test("more than 10,000 are refused", async () => {
    await server.db.db`
      INSERT INTO project_relations (source_id, target_id, relation_type, valid_from)
      SELECT ${a}::text::uuid, ${b}::text::uuid, 't' || n, '2026-01-01Z' FROM generate_series(1, 10000) n`;
    expect(await list(a)).toHaveLength(10_000);
    await relation(server, a, b);
    const answer = await call(server, "GET", `/api/v1/projects/${a}/relations`);
    expect(refusalOf(answer)).toEqual({ status: 422, type: "result_too_large", locs: [] });
  });
});

describe("changing", () => {
  let id: string;
  const metadata = `{"note":"x","pricing_adjustments":[${JSON.stringify(GOOD)},{"type":"surcharge","rate":"0.10","scope":"openstack"}]}`;
  beforeEach(async () => {
    const answer = await post(
      a,
      `{"target_id":"${b}","relation_type":"member_of","valid_from":"2026-03-01T00:00:00Z","metadata":${metadata}}`,
    );
    id = idOf(answer);
  });

  test("valid_to closes it, and is corrected; the rest stays", async () => {
    const closed = await patch(a, id, '{"valid_to":"2026-06-01T02:00:00+02:00"}');
    expect(closed.status).toBe(200);
    expect(JSON.parse(closed.text)).toMatchObject({
      valid_to: "2026-06-01T00:00:00Z",
      metadata: JSON.parse(metadata),
      valid_from: "2026-03-01T00:00:00Z",
    });
    expect(JSON.parse((await patch(a, id, '{"valid_to":"2026-03-01T00:00:00.000001Z"}')).text).valid_to).toBe(
      "2026-03-01T00:00:00.000001Z",
    );
    expect((await auditOf(server, id)).map(({ action, details }) => [action, details]).slice(1)).toEqual([
      ["project_relation.update", { valid_to: "2026-06-01T00:00:00Z" }],
      ["project_relation.update", { valid_to: "2026-03-01T00:00:00.000001Z" }],
    ]);
  });

  test.each(["2026-03-01T00:00:00Z", "2026-02-28T23:59:59.999999Z", "2026-03-01T01:00:00+01:00"])(
    "valid_to %s is not after valid_from: 422",
    async (validTo) => {
      const answer = await patch(a, id, JSON.stringify({ valid_to: validTo }));
      expect(refusalOf(answer)).toEqual({ status: 422, type: "validation", locs: ["body.valid_to"] });
      expect(await ids(a)).toEqual([id]);
      expect(await auditOf(server, id)).toHaveLength(1);
    },
  );

  test("metadata is replaced whole, around adjustments that stay", async () => {
    // Members in another order, and white space, are the same to the database.
    const same = `[ {"scope":"all","rate":"0.15","type":"discount"} , {"scope":"openstack","type":"surcharge","rate":"0.10"}]`;
    const answer = await patch(a, id, `{"metadata":{"other":1.0,"pricing_adjustments":${same}}}`);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"other": 1.0');
    expect(JSON.parse(answer.text).metadata).toEqual({
      other: 1,
      pricing_adjustments: JSON.parse(metadata).pricing_adjustments,
    });
    const sentBack = JSON.stringify({ metadata: JSON.parse(answer.text).metadata });
    expect((await patch(a, id, sentBack)).status).toBe(200);
  });

  const second = '{"type":"surcharge","rate":"0.10","scope":"openstack"}';
  test.each([
    ["dropped", "{}"],
    ["null", '{"pricing_adjustments":null}'],
    ["one fewer", `{"pricing_adjustments":[${JSON.stringify(GOOD)}]}`],
    ["one more", `{"pricing_adjustments":[${JSON.stringify(GOOD)},${second},${second}]}`],
    ["reordered", `{"pricing_adjustments":[${second},${JSON.stringify(GOOD)}]}`],
    ["another rate", `{"pricing_adjustments":[${JSON.stringify(GOOD)},${second.replace("0.10", "0.2")}]}`],
    ["another digit", `{"pricing_adjustments":[${JSON.stringify(GOOD)},${second.replace("0.10", "0.1")}]}`],
    ["a description", `{"pricing_adjustments":[${JSON.stringify({ ...GOOD, description: "" })},${second}]}`],
    ["not even adjustments", '{"pricing_adjustments":"x"}'],
  ])("adjustments that are %s: 409, and nothing changes", async (_, changed) => {
    const answer = await patch(a, id, `{"valid_to":"2026-06-01T00:00:00Z","metadata":${changed}}`);
    expect(refusalOf(answer)).toEqual({ status: 409, type: "conflict", locs: [] });
    expect((await list(a))[0]).toMatchObject({ valid_to: null, metadata: JSON.parse(metadata) });
    expect(await auditOf(server, id)).toHaveLength(1);
  });

  test("adjustments can't be added either", async () => {
    const plain = await relation(server, a, c, { metadata: { note: "x" } });
    const added = await patch(a, plain, `{"metadata":{"pricing_adjustments":[${second}]}}`);
    expect(added.status).toBe(409);
    expect((await patch(a, plain, '{"metadata":{}}')).status).toBe(200);
  });

  test("metadata past its bound: 422", async () => {
    const answer = await patch(a, id, JSON.stringify({ metadata: { a: "x".repeat(70_000) } }));
    expect(refusalOf(answer)).toEqual({ status: 422, type: "validation", locs: ["body.metadata"] });
  });

  test.each([
    ["{}", ["body"]],
    ['{"valid_to":null}', ["body.valid_to"]],
    ['{"valid_to":""}', ["body.valid_to"]],
    ['{"valid_to":"2026-06-01"}', ["body.valid_to"]],
    ['{"valid_to":1}', ["body.valid_to"]],
    ['{"metadata":null}', ["body.metadata"]],
    ['{"metadata":[]}', ["body.metadata"]],
    ['{"metadata":{"\\u0000":1}}', ["body.metadata"]],
    ['{"valid_from":"2026-03-01T00:00:00Z"}', ["body.valid_from"]],
    ['{"relation_type":"t"}', ["body.relation_type"]],
    [`{"target_id":"${UNKNOWN}"}`, ["body.target_id"]],
    ["[]", ["body"]],
    ["", ["body"]],
  ])("%s: 400 at %p", async (body, locs) => {
    const before = await list(a);
    expect(refusalOf(await patch(a, id, body))).toEqual({ status: 400, type: "validation", locs });
    expect(await list(a)).toEqual(before);
    expect(await auditOf(server, id)).toHaveLength(1);
  });

  test("only from the project that it leaves: else 404, for PATCH and DELETE alike", async () => {
    const before = await auditCount(server);
    for (const source of [b, c, UNKNOWN]) {
      expect((await patch(source, id, '{"metadata":{}}')).status).toBe(404);
      expect((await close(source, id)).status).toBe(404);
    }
    expect((await patch(a, UNKNOWN, '{"metadata":{}}')).status).toBe(404);
    expect((await close(a, UNKNOWN)).status).toBe(404);
    expect((await patch("x", id, "{}")).status).toBe(400);
    expect((await close(a, "x")).status).toBe(400);
    expect(await ids(a)).toEqual([id]);
    expect(await auditCount(server)).toBe(before);
  });
});

describe("closing", () => {
  test("is now; a second time changes nothing", async () => {
    const id = await relation(server, a, b, { valid_from: "2026-03-01T00:00:00Z" });
    clock = instant("2026-03-10T12:00:00.000005Z");
    const first = await close(a, id);
    expect([first.status, first.text]).toEqual([204, ""]);
    clock = instant("2026-03-20T00:00:00Z");
    expect((await close(a, id)).status).toBe(204);
    expect(await ids(a, "?at=2026-03-10T12:00:00.000004Z")).toEqual([id]);
    expect(await ids(a, "?at=2026-03-10T12:00:00.000005Z")).toEqual([]);
    const [kept] = await list(a, `?at=${NOON}`);
    expect(kept?.valid_to).toBe("2026-03-10T12:00:00.000005Z");
    const trail = await auditOf(server, id);
    expect(trail.map(({ action, details }) => [action, details]).slice(1)).toEqual([
      ["project_relation.close", { valid_to: "2026-03-10T12:00:00.000005Z" }],
    ]);
  });

  test("an end that was set before stays", async () => {
    const id = await relation(server, a, b);
    await patch(a, id, '{"valid_to":"2027-01-01T00:00:00Z"}');
    expect((await close(a, id)).status).toBe(204);
    expect((await list(a))[0]?.valid_to).toBe("2027-01-01T00:00:00Z");
  });

  test("one that has only just begun, or hasn't yet, never holds, and can be made anew", async () => {
    for (const validFrom of [NOON, "2030-01-01T00:00:00Z"]) {
      const id = await relation(server, a, b, { valid_from: validFrom });
      expect((await close(a, id)).status).toBe(204);
      expect(await ids(a, `?at=${validFrom}`)).toEqual([]);
      expect(await ids(a, "?at=2040-01-01T00:00:00Z")).toEqual([]);
    }
    await relation(server, a, b);
  });

  test("of many at once: one instant, one audit row", async () => {
    const id = await relation(server, a, b, { valid_from: "2026-03-01T00:00:00Z" });
    const answers = await Promise.all(Array.from({ length: 10 }, () => close(a, id)));
    expect(answers.every(({ status }) => status === 204)).toBe(true);
    expect(await auditOf(server, id)).toHaveLength(2);
  });

  test("a parameter is refused: 400", async () => {
    const id = await relation(server, a, b);
    const answer = await call(server, "DELETE", `/api/v1/projects/${a}/relations/${id}?at=${NOON}`);
    expect(refusalOf(answer)).toEqual({ status: 400, type: "validation", locs: ["query.at"] });
  });
});
