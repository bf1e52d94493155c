/** Single requests to services that are busy, slow, broken, enormous, or signed by somebody else. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStackAdapter } from "../../../src/reconcile/openstack/adapter.ts";
import { ServiceFailure } from "../../../src/reconcile/openstack/failure.ts";
import { type Pace, Transport } from "../../../src/reconcile/openstack/transport.ts";
import { HASTY, observe } from "./observing.ts";
import { replay, usualCloudsYaml } from "./replay.ts";

let server: Bun.Server<undefined> | null = null;
afterEach(async () => {
  await server?.stop(true);
  server = null;
});

/** A server that answers in turn; the last answer for ever. */
function answering(...answers: readonly (() => Response | Promise<Response>)[]) {
  let asked = 0;
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => (answers[Math.min(asked++, answers.length - 1)] ?? Response.error)(),
  });
  const ask = { method: "GET", url: new URL("/x?secret-query", server.url), headers: {} } as const;
  return {
    asked: () => asked,
    send: (pace: Pace = HASTY, signal = new AbortController().signal) =>
      new Transport({ ca: null, verify: true }, pace).send(ask, signal),
  };
}

const busy = (status: number, headers: Record<string, string> = {}) => {
  return () => new Response("busy", { status, headers });
};
const fine = () => new Response("fine");
/** So slow to try again on its own that the test would not end. */
const SLOW: Pace = { timeoutMs: 10_000, firstWaitMs: 3_600_000 };

for (const status of [429, 502, 503, 504]) {
  test(`${status} is tried again`, async () => {
    const { send, asked } = answering(busy(status), busy(status), busy(status), fine);
    expect((await send()).text).toBe("fine");
    expect(asked()).toBe(4);
  });
}

test("what stays busy fails after four tries, and says what was answered", async () => {
  const { send, asked } = answering(busy(503));
  await expect(send()).rejects.toThrow(/^GET 127\.0\.0\.1:\d+\/x: answered 503: busy$/);
  expect(asked()).toBe(4);
});

for (const status of [400, 401, 403, 404, 500]) {
  test(`${status} is an answer, and not tried again`, async () => {
    const { send, asked } = answering(busy(status));
    expect((await send()).status).toBe(status);
    expect(asked()).toBe(1);
  });
}

test("Retry-After is honoured in seconds and as a date, by the service's own clock", async () => {
  const years = { date: "Wed, 01 Jan 2031 00:00:00 GMT", "retry-after": "Wed, 01 Jan 2031 00:00:00 GMT" };
  const { send } = answering(busy(429, { "retry-after": "0" }), busy(503, years), fine);
  expect((await send(SLOW)).text).toBe("fine");
});

test("a service that wants to be left alone for an hour is", async () => {
  const { send, asked } = answering(busy(429, { "retry-after": "3600" }), fine);
  await expect(send(SLOW)).rejects.toThrow("not to be asked again for 3600 s");
  expect(asked()).toBe(1);
});

test("a wait ends when the run does", async () => {
  const cancelled = new AbortController();
  const { send } = answering(() => {
    setTimeout(() => cancelled.abort(new Error("over")));
    return new Response("busy", { status: 503 });
  });
  await expect(send(SLOW, cancelled.signal)).rejects.toThrow("over");
});

test("a service that takes the request and never answers is given up, and not asked again", async () => {
  const { send, asked } = answering(() => new Promise(() => {}));
  await expect(send({ timeoutMs: 50, firstWaitMs: 1 })).rejects.toThrow("no answer within 0.05 s");
  expect(asked()).toBe(1);
});

test("a body that never ends is given up as well", async () => {
  const { send } = answering(() => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })));
  await expect(send({ timeoutMs: 50, firstWaitMs: 1 })).rejects.toThrow("no answer within 0.05 s");
});

test("an enormous body is given up", async () => {
  const chunk = new Uint8Array(1024 * 1024);
  let sent = 0;
  const { send } = answering(
    () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent++;
            controller.enqueue(chunk);
          },
        }),
      ),
  );
  await expect(send()).rejects.toThrow("answered more than 64 MiB");
  expect(sent).toBeLessThan(200);
});

test("a body whose told length is enormous is not read", async () => {
  const { send } = answering(() => new Response(new Uint8Array(65 * 1024 * 1024)));
  await expect(send()).rejects.toThrow("answered more than 64 MiB");
});

test("a compressed body is read as what it is", async () => {
  const packed = Bun.gzipSync(new TextEncoder().encode("fine ☃"));
  const { send } = answering(() => new Response(packed, { headers: { "content-encoding": "gzip" } }));
  expect((await send()).text).toBe("fine ☃");
});

test("a connection that breaks in the middle of a body is tried again, and then told", async () => {
  let connections = 0;
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        connections++;
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{");
      },
    },
  });
  const ask = { method: "GET", url: new URL(`http://127.0.0.1:${listener.port}/`), headers: {} } as const;
  const transport = new Transport({ ca: null, verify: true }, HASTY);
  const sending = transport.send(ask, new AbortController().signal);
  await expect(sending).rejects.toThrow(ServiceFailure);
  await expect(sending).rejects.toThrow("the connection broke, 4 times");
  expect(connections).toBe(4);
  listener.stop(true);
});

// A private authority, and a certificate of its for 127.0.0.1.
let certificates = "";
beforeAll(() => {
  certificates = mkdtempSync(join(tmpdir(), "tally-ca-"));
  const openssl = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(["openssl", ...words], { cwd: certificates });
    if (exitCode !== 0) throw new Error(stderr.toString());
  };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  for (const ca of ["ca", "other"]) {
    openssl(
      "req",
      "-x509",
      ...key,
      "-keyout",
      `${ca}.key`,
      "-out",
      `${ca}.pem`,
      "-days",
      "2",
      "-subj",
      `/CN=${ca}`,
    );
  }
  openssl(
    "req",
    ...key,
    "-keyout",
    "server.key",
    "-out",
    "server.csr",
    "-subj",
    "/CN=cloud",
    "-addext",
    "subjectAltName=IP:127.0.0.1",
  );
  const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-copy_extensions", "copy"];
  openssl("x509", "-req", "-in", "server.csr", ...signed, "-out", "server.pem");
});
afterAll(() => rmSync(certificates, { recursive: true }));

/** The recorded cloud behind TLS, and an entry with these further lines. */
function overTls(more: string) {
  const tls = {
    cert: readFileSync(join(certificates, "server.pem"), "utf8"),
    key: readFileSync(join(certificates, "server.key"), "utf8"),
  };
  return replay({ tls, cloudsYaml: (url) => `${usualCloudsYaml(url)}${more}` });
}

test("a private CA is trusted where cacert names it, for Keystone and for the services", async () => {
  const cloud = overTls(`    cacert: ${certificates}/ca.pem\n`);
  expect(cloud.url).toStartWith("https://");
  expect((await observe(cloud.env)).incomplete).toEqual([]);
  await cloud.stop();
});

test("a certificate that nobody trusts ends the run, and the message says what to set", async () => {
  for (const more of ["", `    cacert: ${certificates}/other.pem\n`]) {
    const cloud = overTls(more);
    await expect(observe(cloud.env)).rejects.toThrow(
      /certificate isn't trusted \(.*\): see cacert and verify/,
    );
    expect(cloud.asked).toEqual([]);
    await cloud.stop();
  }
});

test("verify: false takes any certificate", async () => {
  const cloud = overTls("    verify: false\n");
  expect((await observe(cloud.env)).incomplete).toEqual([]);
  await cloud.stop();
});

test("a cacert that can't be read ends the run, and names the entry and the file", async () => {
  const cloud = overTls(`    cacert: ${certificates}/nowhere.pem\n`);
  const adapter = openStackAdapter({ osCloud: "zed", includeOctavia: false }, cloud.env, HASTY);
  await expect(adapter.open({ signal: new AbortController().signal })).rejects.toThrow(
    /^zed in .*clouds\.yaml: cacert .*nowhere\.pem can't be read \(ENOENT\)$/,
  );
  await cloud.stop();
});
