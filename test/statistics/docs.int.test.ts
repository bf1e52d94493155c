/** docs/statistics.md: its events are sent, its questions asked, its answers compared. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { page, rowsUnder } from "../docs/markdown.ts";
import { send } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

const text = await page("docs/statistics.md");
const examples = [...text.matchAll(/```\nGET (\S+)\n```\n+```json\n([\s\S]*?)\n```/g)].map(
  ([, path = "", answer = ""]) => ({ path, answer }),
);

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
  const events = rowsUnder(text, "timestamp").map(
    ([at = "", type = "", resource = "", project = "", state = ""], n) => ({
      id: `e${n}`,
      at,
      type,
      resource,
      project,
      resourceType: "instance",
      payload:
        state === ""
          ? null
          : JSON.stringify({ state, size: { vcpus: 1, ram_gb: 1, disk_gb: 1, flavor: "s" } }),
    }),
  );
  // In whatever order.
  await send(server, events.toReversed());
});
afterAll(() => server.stop());

test("there are examples", () => {
  expect(examples).toHaveLength(3);
});

test.each(examples)("GET $path", async ({ path, answer }) => {
  const got = await server.request(path, { token: server.credentials.admin });
  expect(await got.json()).toEqual(JSON.parse(answer));
});
