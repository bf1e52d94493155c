/** What holds for every request: its id, methods, headers, errors, the access line. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { Problem } from "../../src/problem.ts";
import { post, smallApp } from "./small-app.ts";

let thrown: unknown = new Error("on purpose");
const app = smallApp(() => thrown);
afterAll(() => app.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("X-Request-ID", () => {
  test.each(["a", "req-1/ü".slice(0, 6), "!~", "x".repeat(128)])("%s is kept", async (id) => {
    const answer = await app.request("/plain", { headers: { "x-request-id": id } });
    expect(answer.headers.get("x-request-id")).toBe(id);
  });

  test.each(["x".repeat(129), "two words", "ünseen"])("%s is replaced", async (id) => {
    const answer = await app.request("/plain", { headers: { "x-request-id": id } });
    expect(answer.headers.get("x-request-id")).toMatch(UUID);
  });

  test("is fresh for every request without one", async () => {
    const [a, b] = await Promise.all([app.request("/plain"), app.request("/plain")]);
    expect(a?.headers.get("x-request-id")).toMatch(UUID);
    expect(a?.headers.get("x-request-id")).not.toBe(b?.headers.get("x-request-id") ?? "");
  });

  const every: [what: string, status: number, path: string, init: RequestInit][] = [
    ["a good answer", 200, "/plain", {}],
    ["a HEAD", 200, "/plain", { method: "HEAD" }],
    ["an OPTIONS", 204, "/plain", { method: "OPTIONS" }],
    ["a 400", 400, "/plain?x=1", {}],
    ["a 404", 404, "/nope", {}],
    ["a 405", 405, "/plain", { method: "DELETE" }],
    ["a 413", 413, "/optional", post("x".repeat(2_000))],
    ["a 500", 500, "/fails", {}],
  ];
  test.each(every)("is on %s, with the headers that keep browsers safe", async (_, status, path, init) => {
    const answer = await app.request(path, {
      ...init,
      headers: { ...init.headers, "x-request-id": "mine" },
    });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("x-request-id")).toBe("mine");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("content-security-policy")).toBe("frame-ancestors 'none'");
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test("is on every line that its request logs, also after an await and beside other requests", async () => {
    app.logged.length = 0;
    await Promise.all(
      ["first", "second", "third"].map((id, index) =>
        app.request(`/slow?ms=${60 - index * 20}`, { headers: { "x-request-id": id } }),
      ),
    );
    for (const id of ["first", "second", "third"]) {
      const lines = app.logged.filter((line) => line.request_id === id).map((line) => line.message);
      expect(lines).toEqual(["working", "worked", "request"]);
    }
  });
});

describe("methods", () => {
  const cases: [method: string, path: string, allow: string][] = [
    ["POST", "/plain", "GET, HEAD, OPTIONS"],
    ["DELETE", "/things/a/b", "GET, HEAD, OPTIONS, PUT"],
    ["GET", "/raw", "OPTIONS, POST"],
    ["HEAD", "/raw", "OPTIONS, POST"],
    ["TRACE", "/plain", "GET, HEAD, OPTIONS"],
  ];
  // An answer to HEAD has no body, and fetch lets none of TRACE through.
  test.each(cases)("%s %s is 405 and says what is allowed", async (method, path, allow) => {
    const answer = await app.request(path, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe(allow);
    if (method !== "HEAD" && method !== "TRACE") {
      expect(await answer.json()).toEqual({
        type: "urn:tally:error:method_not_allowed",
        title: "The path exists, the method does not",
        status: 405,
        detail: `this path takes ${allow}`,
      });
    }
  });

  test("an unknown path is 404, whatever the method", async () => {
    for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"]) {
      const answer = await app.request("/nope", { method });
      expect(answer.status).toBe(404);
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(await answer.json()).toEqual({
        type: "urn:tally:error:not_found",
        title: "No such path or thing",
        status: 404,
      });
    }
  });

  test("OPTIONS is 204 with what is allowed", async () => {
    const answer = await app.request("/things/a/b", { method: "OPTIONS" });
    expect(answer.status).toBe(204);
    expect(answer.headers.get("allow")).toBe("GET, HEAD, OPTIONS, PUT");
    expect(await answer.text()).toBe("");
  });

  test.each(["/things/a/b%2Fc", "/list?limit=5", "/list?limit=0", "/fails"])(
    "HEAD %s answers like GET, without the body",
    async (path) => {
      const get = await app.request(path);
      const head = await app.request(path, { method: "HEAD" });
      expect(head.status).toBe(get.status);
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type") ?? "");
      expect(head.headers.get("content-length")).toBe(get.headers.get("content-length") ?? "");
      expect(await head.text()).toBe("");
    },
  );
});

describe("errors", () => {
  test("of Tally's own are told as such and logged with their stack", async () => {
    thrown = new Error("SELECT secret FROM table", { cause: new Error("deep") });
    app.logged.length = 0;
    const answer = await app.request("/fails", { headers: { "x-request-id": "broken" } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(await answer.json()).toEqual({
      type: "urn:tally:error:internal",
      title: "A fault of Tally's own",
      status: 500,
    });
    const [line] = app.logged;
    expect(line).toMatchObject({ level: "ERROR", message: "request failed", request_id: "broken" });
    expect(line?.error).toMatchObject({ message: "SELECT secret FROM table", cause: { message: "deep" } });
    expect(JSON.stringify(line?.error)).toContain("envelope.unit.test.ts");
  });

  const database: [what: string, error: object][] = [
    ["refuses connections", { code: "ERR_POSTGRES_CONNECTION_REFUSED" }],
    ["closed the connection", { code: "ERR_POSTGRES_CONNECTION_CLOSED" }],
    ["shuts down", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "57P01" }],
    ["is read-only", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "25006" }],
    ["is full", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "53100" }],
    ["cancelled a statement that took too long", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "57014" }],
    ["waited too long for a lock", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "55P03" }],
    ["let others win", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "40P01" }],
  ];
  test.each(database)("of a database that %s are 503, and when to come back", async (_, error) => {
    thrown = Object.assign(new Error("relation events, host db.internal"), error);
    const answer = await app.request("/fails");
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("5");
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject({ type: "urn:tally:error:unavailable", status: 503 });
    expect(text).not.toContain("db.internal");
  });

  test("of the database that lie in a statement are 500", async () => {
    thrown = Object.assign(new Error("syntax error"), { code: "ERR_POSTGRES_SERVER_ERROR", errno: "42601" });
    expect((await app.request("/fails")).status).toBe(500);
  });

  test("that are thrown as a problem are answered as they say", async () => {
    thrown = new Problem("relation_cycle", "it would close", {
      errors: [{ loc: "body.target_id", msg: "x" }],
    });
    const answer = await app.request("/fails");
    expect(answer.status).toBe(422);
    expect(await answer.json()).toEqual({
      type: "urn:tally:error:relation_cycle",
      title: "The relation would close an attribution cycle",
      status: 422,
      detail: "it would close",
      errors: [{ loc: "body.target_id", msg: "x" }],
    });
    thrown = new Problem("validation", "x", { status: 422 });
    expect((await app.request("/fails")).status).toBe(422);
    thrown = new Problem("unauthorized");
    expect((await app.request("/fails")).headers.get("www-authenticate")).toBe("Bearer");
  });

  test("that are no errors at all are 500", async () => {
    for (thrown of ["text", null, undefined, 7, { status: 200 }]) {
      expect((await app.request("/fails")).status).toBe(500);
    }
  });
});

describe("the access line", () => {
  test("tells method, pattern, status and duration; no token, no query", async () => {
    app.logged.length = 0;
    await app.request("/things/a/b?token=tly_a_0123456789abcdef", {
      headers: { authorization: "Bearer very-secret", "x-request-id": "line" },
    });
    expect(app.logged).toHaveLength(1);
    const { timestamp, duration_ms, ...line } = app.logged[0] ?? {};
    expect(line).toEqual({
      level: "INFO",
      message: "request",
      request_id: "line",
      method: "GET",
      route: "/things/:cloud/:id",
      status: 400,
    });
    expect(String(timestamp)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(duration_ms).toBeGreaterThan(0);
  });

  test("and the histogram count unknown paths as one", async () => {
    await app.request("/unknown/1");
    await app.request("/unknown/2");
    const text = await app.metrics.registry.getSingleMetricAsString("tally_http_request_duration_seconds");
    expect(text).toContain('route="unknown"');
    expect(text).toContain('method="GET",route="/things/:cloud/:id",status="400"');
    expect(text).not.toContain("/unknown/1");
    expect(text).not.toContain("TRACE");
  });
});

describe("a connection", () => {
  test("with a short host name finds its route", async () => {
    expect(await rawStatus("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")).toBe(200);
  });

  test("of HTTP/1.0, or with an empty Host, needs no host: load balancers' health checks name none", async () => {
    expect(await rawStatus("GET /plain HTTP/1.0\r\n\r\n")).toBe(200);
    expect(await rawStatus("HEAD /plain HTTP/1.0\r\n\r\n")).toBe(200);
    expect(await rawStatus("GET /plain HTTP/1.1\r\nHost: \r\n\r\n")).toBe(200);
    expect(await rawStatus("GET /things/a%2Fb/c HTTP/1.0\r\n\r\n")).toBe(200);
    expect(await rawStatus("GET /plain?colour=red HTTP/1.0\r\n\r\n")).toBe(400);
    expect(await rawStatus("GET //plain HTTP/1.0\r\n\r\n")).toBe(404);
    const type = "Content-Type: application/json\r\n";
    expect(await rawStatus(`POST /raw HTTP/1.0\r\n${type}Content-Length: 2\r\n\r\n[]`)).toBe(200);
    expect(await rawStatus(`POST /raw HTTP/1.0\r\n${type}Content-Length: 2\r\n\r\n[x`)).toBe(400);
    expect(await rawStatus("TRACE /plain HTTP/1.0\r\n\r\n")).toBe(405);
    expect(await rawStatus("GET /plain HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]")).toBe(200);
  });

  test("with a broken Host is told so", async () => {
    expect(await rawStatus("GET /plain HTTP/1.1\r\nHost: a b{}\r\n\r\n")).toBe(400);
  });
});

describe("stopping", () => {
  test("lets what is in flight end, and takes nothing new", async () => {
    const other = smallApp();
    const slow = other.request("/slow?ms=400");
    await Bun.sleep(100);
    const stopped = other.stop();
    await Bun.sleep(50);
    await expect(other.request("/plain")).rejects.toThrow();
    expect(await (await slow).text()).toBe("done");
    await stopped;
  });

  test("cuts off what takes longer than the grace", async () => {
    const other = smallApp();
    const slow = other.request("/slow?ms=20000").then(
      () => "answered",
      () => "cut off",
    );
    await Bun.sleep(100);
    const start = performance.now();
    await other.stop(0.2);
    expect(await slow).toBe("cut off");
    expect(performance.now() - start).toBeLessThan(2_000);
  });

  test.each([
    ["idle connections", ""],
    ["half a request's head", "GET /plain HTTP/1.1\r\nHo"],
  ])("doesn't wait for %s", async (_, sent) => {
    const other = smallApp();
    const socket = connect(other.port, "127.0.0.1");
    socket.on("error", () => {});
    await new Promise<void>((resolve) => socket.once("connect", resolve));
    socket.write(sent);
    await Bun.sleep(100);
    const start = performance.now();
    await other.stop();
    expect(performance.now() - start).toBeLessThan(2_000);
    socket.destroy();
  });
});

test("a handler may work for longer than the server's idle timeout", async () => {
  // The timeout is 60 seconds; what a test can wait for is that none is set while a handler works.
  const other = smallApp();
  expect(await (await other.request("/slow?ms=11000")).text()).toBe("done");
  await other.stop();
}, 20_000);

function rawStatus(request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(app.port, "127.0.0.1", () => socket.write(request));
    socket.on("data", (chunk) => {
      resolve(Number(String(chunk).split(" ")[1]));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
