/** Cursors at the lists that page: what isn't one is 400 at query.cursor, never 500. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { encodeCursor } from "../../src/http/page.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

const LISTS = ["events", "resources", "rejected-events", "audit-log", "sync-runs", "projects"];
const POSITIONS: Record<string, string[]> = {
  events: ["1767225600000000", "event-1"],
  resources: ["os-prod", "instance", "1"],
  "rejected-events": ["1767225600000000", "0a1b2c3d-0000-4000-8000-00000000000f"],
  projects: ["os-prod", "p1"],
  "audit-log": ["1767225600000000", "17"],
  "sync-runs": ["1767225600000000", "0a1b2c3d-0000-4000-8000-00000000000f"],
};

describe.each(LISTS)("GET /api/v1/%s", (list) => {
  const good = encodeCursor(list, POSITIONS[list] ?? []);
  const ask = (cursor: string) =>
    server.request(`/api/v1/${list}?cursor=${encodeURIComponent(cursor)}`, {
      token: server.credentials.admin,
    });

  test("takes a cursor of its own", async () => {
    const answer = await ask(good);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ items: [], next_cursor: null });
  });

  test("refuses every other text", async () => {
    const others = [
      "x",
      "0",
      "null",
      "AAAAAAAA",
      good.slice(0, -1),
      good.slice(1),
      `${good}=`,
      "A".repeat(5_000),
      ...LISTS.filter((other) => other !== list).map((other) => encodeCursor(other, POSITIONS[other] ?? [])),
      encodeCursor(list, []),
      encodeCursor(list, ["", "", "", ""]),
      encodeCursor(list, [...(POSITIONS[list] ?? []), "more"]),
    ];
    // A position that starts with an instant must start with one that there is.
    if (list !== "resources" && list !== "projects") {
      for (const instant of ["", "x", "1.5", "-0", "99999999999999999999", "253402300800000000", " 1"]) {
        others.push(encodeCursor(list, [instant, POSITIONS[list]?.[1] ?? ""]));
      }
    }
    // What stands behind it is an id of the list's own kind. An event's is any text.
    if (["rejected-events", "audit-log", "sync-runs"].includes(list)) {
      for (const id of ["", "x", "-1", "0", "1.5", "9".repeat(30), "0A1B2C3D-0000-4000-8000-00000000000F"]) {
        others.push(encodeCursor(list, [POSITIONS[list]?.[0] ?? "", id]));
      }
    }
    for (const cursor of others) {
      const answer = await ask(cursor);
      expect(answer.status, cursor).toBe(400);
      expect(JSON.parse(await answer.text()).errors, cursor).toEqual([
        { loc: "query.cursor", msg: "is not a cursor of this list" },
      ]);
    }
  });
});
