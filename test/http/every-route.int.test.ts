/** What holds for every route: headers, HEAD, OPTIONS, other methods, and no CORS. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
let routes: Map<string, Set<string>>;
beforeAll(async () => {
  server = await testServer();
  const document: { paths: Record<string, Record<string, unknown>> } = JSON.parse(
    await (await server.request("/openapi.json")).text(),
  );
  routes = new Map(
    Object.entries(document.paths).map(([path, methods]) => [
      path.replace(/\{\w+\}/g, "00000000-0000-4000-8000-000000000001"),
      new Set(Object.keys(methods).map((method) => method.toUpperCase())),
    ]),
  );
  // Assets of the page, and what is no route.
  routes.set("/docs/start.js", new Set(["GET"]));
});
afterAll(() => server.stop());

/** Every method at every path, as an admin and as nobody. */
async function everyAnswer(look: (what: string, answer: Response) => Promise<void> | void): Promise<number> {
  let answers = 0;
  for (const path of [...routes.keys(), "/nowhere"]) {
    for (const method of ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACK"]) {
      for (const token of [server.credentials.admin, null]) {
        const answer = await server.request(path, {
          method,
          headers: {
            origin: "https://elsewhere.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization",
          },
          ...(token === null ? {} : { token }),
        });
        await look(`${method} ${path} ${token === null ? "as nobody" : "as admin"}`, answer);
        await answer.arrayBuffer();
        answers += 1;
      }
    }
  }
  return answers;
}

test("no answer lets another origin in; every answer carries the security headers and an id", async () => {
  const answers = await everyAnswer((what, { headers }) => {
    const cors = [...headers.keys()].filter((name) => name.startsWith("access-control-"));
    expect(cors, what).toEqual([]);
    expect(headers.get("x-content-type-options"), what).toBe("nosniff");
    expect(headers.get("content-security-policy"), what).toContain("frame-ancestors 'none'");
    const asset = what.includes("/docs/");
    if (!asset) expect(headers.get("cache-control"), what).toBe("no-store");
    expect(headers.get("x-request-id"), what).toMatch(/^[\da-f-]{36}$/);
    expect(headers.get("set-cookie"), what).toBeNull();
  });
  expect(answers).toBeGreaterThan(300);
});

test("a method that a path doesn't have is 405 with those that it has; OPTIONS is 204 with the same", async () => {
  for (const [path, methods] of routes) {
    const allow = [...methods, "OPTIONS", ...(methods.has("GET") ? ["HEAD"] : [])].sort().join(", ");
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]) {
      if (methods.has(method) || (method === "HEAD" && methods.has("GET"))) continue;
      // Nobody in particular: which methods there are is no secret.
      const answer = await server.request(path, { method });
      const what = `${method} ${path}`;
      expect(answer.status, what).toBe(method === "OPTIONS" ? 204 : 405);
      expect(answer.headers.get("allow"), what).toBe(allow);
      const body = await answer.text();
      if (method === "OPTIONS" || method === "HEAD") expect(body, what).toBe("");
      else expect(JSON.parse(body).type, what).toBe("urn:tally:error:method_not_allowed");
    }
  }
});

test("HEAD answers as GET does, without the body", async () => {
  for (const [path, methods] of routes) {
    if (!methods.has("GET")) continue;
    for (const token of [server.credentials.admin, undefined]) {
      const init = token === undefined ? {} : { token };
      const get = await server.request(path, init);
      const head = await server.request(path, { ...init, method: "HEAD" });
      expect(head.status, path).toBe(get.status);
      expect(head.headers.get("content-type"), path).toBe(get.headers.get("content-type"));
      expect(head.headers.get("etag"), path).toBe(get.headers.get("etag"));
      expect(await head.text(), path).toBe("");
      const length = (await get.arrayBuffer()).byteLength;
      // The metrics count the very requests.
      if (path !== "/metrics") expect(Number(head.headers.get("content-length")), path).toBe(length);
    }
  }
});

test("a path that is no route is 404 whatever the method", async () => {
  for (const method of ["GET", "POST", "OPTIONS", "HEAD", "DELETE"]) {
    expect((await server.request("/api/v1/nowhere", { method })).status, method).toBe(404);
  }
});
