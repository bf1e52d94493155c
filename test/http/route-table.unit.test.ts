import { expect, test } from "bun:test";
import { routeTable } from "../../src/http/route-table.ts";

const match = routeTable([
  { method: "GET", path: "/projects/:id" },
  { method: "PATCH", path: "/projects/:id" },
  { method: "GET", path: "/projects/export" },
  { method: "GET", path: "/projects/:id/relations/:relation_id" },
  { method: "GET", path: "/projects/:id/relations/open" },
  { method: "POST", path: "/events" },
]);

test.each([
  ["/events", "/events", "OPTIONS, POST"],
  ["/projects/1", "/projects/:id", "GET, HEAD, OPTIONS, PATCH"],
  ["/projects/export", "/projects/export", "GET, HEAD, OPTIONS"],
  ["/projects/1/relations/open", "/projects/:id/relations/open", "GET, HEAD, OPTIONS"],
  ["/projects/1/relations/2", "/projects/:id/relations/:relation_id", "GET, HEAD, OPTIONS"],
])("%s is %s, which takes %s", (path, pattern, allow) => {
  const found = match(path);
  expect(found?.route.pattern).toBe(pattern);
  expect(found?.route.allow).toBe(allow);
});

test("parameters are the path's parts as they were sent", () => {
  expect(match("/projects/a%2Fb/relations/%zz")?.parameters).toEqual({ id: "a%2Fb", relation_id: "%zz" });
});

test.each(["/", "", "/event", "/events/", "/projects/", "/projects//relations/1", "/projects/1/relations"])(
  "%j is no path",
  (path) => {
    expect(match(path)).toBeNull();
  },
);
