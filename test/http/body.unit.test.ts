/** Bodies: their type, their encoding, their bound, their text, their members. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { createGzip, gzipSync, zstdCompressSync } from "node:zlib";
import { faults, post, refused, smallApp } from "./small-app.ts";

const app = smallApp();
afterAll(() => app.stop());

const MIB = 1024 * 1024;
const json = (bytes: number) => `"${"x".repeat(bytes - 2)}"`;

describe("Content-Type", () => {
  test.each([
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/json;",
  ])("%s is taken", async (type) => {
    expect((await app.request("/raw", post("{}", { "content-type": type }))).status).toBe(200);
  });

  test.each([
    "text/plain",
    "application/jsonx",
    "application/problem+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
  ])("%s is refused", async (type) => {
    expect(await faults(await app.request("/raw", post("{}", { "content-type": type })))).toEqual(
      refused(["body", "Content-Type must be application/json"]),
    );
  });

  test("none is refused", async () => {
    const answer = await app.request("/raw", { method: "POST", body: Buffer.from("{}") });
    expect(await faults(answer)).toEqual(refused(["body", "Content-Type must be application/json"]));
  });

  test.each(["application/json; charset=latin1", "application/json; charset=utf-8; q=1"])(
    "%s is refused",
    async (type) => {
      expect(await faults(await app.request("/raw", post("{}", { "content-type": type })))).toEqual(
        refused(["body", "Content-Type may carry charset=utf-8 and nothing else"]),
      );
    },
  );
});

describe("Content-Encoding", () => {
  const text = JSON.stringify({ name: "ü".repeat(50_000) });
  const encoded: [name: string, encoding: string, bytes: Uint8Array][] = [
    ["identity", "identity", Buffer.from(text)],
    ["gzip", "gzip", gzipSync(text)],
    ["GZIP", "GZIP", gzipSync(text)],
    ["gzip of two members", "gzip", Buffer.concat([gzipSync(text.slice(0, 999)), gzipSync(text.slice(999))])],
    ["zstd", "zstd", zstdCompressSync(text)],
  ];
  test.each(encoded)("%s unpacks", async (_, encoding, bytes) => {
    const answer = await app.request("/raw", post(bytes, { "content-encoding": encoding }));
    expect(await answer.json()).toEqual({ length: text.length, start: text.slice(0, 40), type: "object" });
  });

  const broken: [name: string, encoding: string, bytes: Uint8Array, msg: string][] = [
    ["cut gzip", "gzip", gzipSync(text).subarray(0, -9), "is not valid gzip"],
    ["gzip with a wrong checksum", "gzip", flipped(gzipSync(text), -6), "is not valid gzip"],
    ["no gzip", "gzip", Buffer.from(text), "is not valid gzip"],
    ["no zstd", "zstd", Buffer.from(text), "is not valid zstd"],
    ["br", "br", Buffer.from(text), "Content-Encoding must be gzip, zstd or absent"],
    ["deflate", "deflate", Buffer.from(text), "Content-Encoding must be gzip, zstd or absent"],
    ["gzip twice", "gzip, gzip", gzipSync(gzipSync(text)), "Content-Encoding must be gzip, zstd or absent"],
    ["gzip of nothing", "gzip", gzipSync(""), "is required"],
  ];
  test.each(broken)("%s is refused", async (_, encoding, bytes, msg) => {
    const answer = await app.request("/raw", post(bytes, { "content-encoding": encoding }));
    expect(await faults(answer)).toEqual(refused(["body", msg]));
  });

  test("a cut zstd stream is refused", async () => {
    const bytes = zstdCompressSync(text).subarray(0, -9);
    const answer = await app.request("/raw", post(bytes, { "content-encoding": "zstd" }));
    expect(answer.status).toBe(400);
  });
});

describe("32 MiB", () => {
  const tooLarge = {
    type: "urn:tally:error:payload_too_large",
    title: "More than the route takes at once",
    status: 413,
    detail: "the body is larger than 33554432 bytes",
  };

  test("exactly are taken, plain and packed", async () => {
    const text = json(32 * MIB);
    expect((await app.request("/raw", post(text))).status).toBe(200);
    const packed = await app.request("/raw", post(gzipSync(text), { "content-encoding": "gzip" }));
    expect(packed.status).toBe(200);
  });

  test("and one byte are refused by their announced length, before they are sent", async () => {
    const { status, body } = await rawExchange(
      `POST /raw HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${32 * MIB + 1}\r\n\r\n`,
    );
    expect(status).toBe(413);
    expect(JSON.parse(body)).toEqual(tooLarge);
  });

  test("and one byte are refused while they arrive without a length", async () => {
    let sent = 0;
    const stream = new ReadableStream({
      pull(controller) {
        sent += MIB;
        if (sent > 300 * MIB) controller.close();
        else controller.enqueue(new Uint8Array(MIB).fill(0x20));
      },
    });
    const answer = await app.request("/raw", post(stream));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toEqual(tooLarge);
    expect(sent).toBeLessThan(200 * MIB);
  });

  test("and one byte are refused when they unpack to that", async () => {
    const answer = await app.request(
      "/raw",
      post(gzipSync(json(32 * MIB + 1)), { "content-encoding": "gzip" }),
    );
    expect(answer.status).toBe(413);
  });

  test.each(["gzip", "zstd"])("a %s bomb of 1 GiB is refused while it unpacks", async (encoding) => {
    const bomb = encoding === "gzip" ? await gzipOfZeros(1024) : zstdOfZeros(1024);
    expect(bomb.byteLength).toBeLessThan(2 * MIB);
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    const start = performance.now();
    const answer = await app.request("/raw", post(bomb, { "content-encoding": encoding }));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toEqual(tooLarge);
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * MIB);
  });

  test.each(["gzip", "zstd"])("a hundred %s bombs at once fill no memory", async (encoding) => {
    const bomb = encoding === "gzip" ? await gzipOfZeros(64) : zstdOfZeros(64);
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 5);
    const statuses = await Promise.all(
      Array.from(
        { length: 100 },
        async () => (await app.request("/raw", post(bomb, { "content-encoding": encoding }))).status,
      ),
    );
    clearInterval(watch);
    expect(statuses).toEqual(Array<number>(100).fill(413));
    // Unpacked to the bound, all of them would be 3,200 MiB.
    expect(most - before).toBeLessThan(1_000 * MIB);
  });

  test("may be less for a route", async () => {
    const taken = `{"cloud":"${"x".repeat(500)}"}`;
    expect((await app.request("/optional", post(taken))).status).toBe(200);
    expect((await app.request("/optional", post(taken.padEnd(1_001)))).status).toBe(413);
  });

  test("a body that no route reads is answered all the same", async () => {
    const answer = await app.request("/unread", post(Buffer.alloc(40 * MIB)));
    expect(await answer.text()).toBe("never looked");
  });
});

describe("text", () => {
  const notUtf8: [name: string, bytes: number[]][] = [
    ["a lone continuation byte", [0x22, 0x80, 0x22]],
    ["latin-1", [0x22, 0xfc, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["a cut character", [0x22, 0xf0, 0x9f]],
    ["UTF-16", [0xff, 0xfe, 0x22, 0, 0x22, 0]],
  ];
  test.each(notUtf8)("%s is not UTF-8", async (_, bytes) => {
    expect(await faults(await app.request("/raw", post(new Uint8Array(bytes))))).toEqual(
      refused(["body", "is not UTF-8"]),
    );
  });

  test.each(["nope", "{", "{'a':1}", "[1,]", "{} {}", "NaN", " ", '\uFEFF{"a":1}', '"\u0000"'])(
    "%j is not JSON",
    async (text) => {
      expect(await faults(await app.request("/raw", post(Buffer.from(text))))).toEqual(
        refused(["body", "is not JSON"]),
      );
    },
  );

  test("an answer never quotes what wasn't JSON", async () => {
    const answer = await app.request("/raw", post('{"password":"hunter2"'));
    expect(await answer.text()).not.toContain("hunter2");
  });

  test("100,000 nested arrays harm nobody", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    expect((await app.request("/raw", post(deep))).status).toBe(200);
    const strict = await app.request("/strict", post(`{"name":"x","metadata":{"a":${deep},"\\u0000":1}}`));
    expect(await faults(strict)).toEqual(
      refused(["body.metadata", "holds a NUL character, which cannot be stored"]),
    );
    expect((await app.request("/plain")).status).toBe(200);
  });
});

describe("members", () => {
  test("are read by their kinds, and the text is kept digit for digit", async () => {
    const text = '{"name":"x","at":"1970-01-01T00:00:00.000001Z","metadata":{"n":12345678901234567890}}';
    const answer = await app.request("/strict", post(text));
    const read: { text: string; value: { at: string } } = JSON.parse(await answer.text());
    expect(read.text).toBe(text);
    expect(read.value.at).toBe("1");
  });

  const cases: [body: string, ...errors: [loc: string, msg: string][]][] = [
    ["[]", ["body", "must be an object"]],
    ["null", ["body", "must be an object"]],
    ["{}", ["body.name", "is required"]],
    ['{"name":null}', ["body.name", "must be a string"]],
    ['{"name":""}', ["body.name", "must be 1 to 512 bytes, got 0"]],
    ['{"name":"x","nmae":"y"}', ["body.nmae", "is no member of this operation"]],
    ['{"name":"x","__proto__":{}}', ["body.__proto__", "is no member of this operation"]],
    ['{"name":"x","count":1.5}', ["body.count", "must be an integer (minimum 1)"]],
    ['{"name":"x","count":0}', ["body.count", "must be an integer (minimum 1)"]],
    ['{"name":"x","note":1}', ["body.note", "must be a string, or must be null"]],
    ['{"name":"x","metadata":[]}', ["body.metadata", "must be an object"]],
    ['{"name":"x","metadata":null}', ["body.metadata", "must be an object"]],
    ['{"name":"x","parts":[{"size":1},{"size":"2"}]}', ["body.parts.1.size", "must be a number"]],
    ['{"name":"x","parts":[{"size":1,"sise":2}]}', ["body.parts.0.sise", "is no member of this operation"]],
    ['{"name":"a\\u0000b"}', ["body.name", "holds a NUL character, which cannot be stored"]],
    [
      '{"name":"x","metadata":{"a":[{"\\u0000":1}]}}',
      ["body.metadata", "holds a NUL character, which cannot be stored"],
    ],
    ['{"name":"\\ud800"}', ["body.name", "holds half a surrogate pair, which is no text"]],
    [
      '{"name":"\\u0000","note":"\\udc00"}',
      ["body.name", "holds a NUL character, which cannot be stored"],
      ["body.note", "holds half a surrogate pair, which is no text"],
    ],
    // Once a member, whatever else is wrong with it.
    [
      '{"name":"x","at":"\\u0000","\\u0000":1}',
      ["body.at", "must be an RFC 3339 date and time with an offset, like 2026-03-01T08:00:00Z"],
      ["body.\0", "is no member of this operation"],
    ],
    ['"\\u0000"', ["body", "must be an object"]],
    [
      '{"name":"x","at":"2026-01-01T00:00:00 02:00"}',
      ["body.at", "must be an RFC 3339 date and time with an offset, like 2026-03-01T08:00:00Z"],
    ],
  ];
  test.each(cases)("%s is refused", async (body, ...errors) => {
    expect(await faults(await app.request("/strict", post(body)))).toEqual(refused(...errors));
  });

  test("a backslash-escaped \\\\u0000 is no NUL", async () => {
    expect((await app.request("/strict", post('{"name":"a\\\\u0000b"}'))).status).toBe(200);
  });

  test("their faults are told with those of the query", async () => {
    expect(await faults(await app.request("/strict?limit=0&x=1", post('{"count":0}')))).toEqual(
      refused(
        ["query.limit", "must be an integer from 1 to 1000"],
        ["query.x", "is no parameter of this operation"],
        ["body.name", "is required"],
        ["body.count", "must be an integer (minimum 1)"],
      ),
    );
  });
});

describe("no body", () => {
  test("is refused where one is required", async () => {
    const answer = await app.request("/raw", {
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    expect(await faults(answer)).toEqual(refused(["body", "is required"]));
  });

  test.each([{}, { "content-type": "text/plain" }, { "content-type": "application/json" }])(
    "is fine where it may be absent, with headers %j",
    async (headers: Record<string, string>) => {
      const answer = await app.request("/optional", { method: "POST", headers });
      expect(await answer.json()).toEqual({ text: "" });
    },
  );
});

describe("a body that the operation doesn't take", () => {
  const fault = "is not taken by this operation: its parameters stand in the path and the query";

  test("is refused: whoever sends filters in it would otherwise be answered without them", async () => {
    expect(await faults(await app.request("/bare", post('{"cloud":"eu1"}')))).toEqual(
      refused(["body", fault]),
    );
    expect(
      await faults(await app.request("/bare?x=1", post("[1]", { "content-type": "text/plain" }))),
    ).toEqual(refused(["query.x", "is no parameter of this operation"], ["body", fault]));
  });

  test("is refused of a GET, too", async () => {
    const { status, body } = await rawExchange(
      'GET /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{"cloud":"eu1"}',
    );
    expect([status, JSON.parse(body).errors]).toEqual([400, [{ loc: "body", msg: fault }]]);
  });

  test.each(["", "{}"])("of %p has no members, and is nothing to refuse", async (body) => {
    expect((await app.request("/bare", post(body))).status).toBe(200);
  });
});

/** One request as given, byte for byte; the first answer. */
function rawExchange(request: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(app.port, "127.0.0.1", () => socket.write(request));
    socket.on("data", (chunk) => {
      received += chunk;
      const [head = "", body] = received.split("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
      if (body !== undefined && Buffer.byteLength(body) >= length) {
        resolve({ status: Number(head.split(" ")[1]), body });
        socket.destroy();
      }
    });
    socket.on("error", reject);
  });
}

/** Packed without ever holding what it unpacks to. */
function gzipOfZeros(mib: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const gzip = createGzip({ level: 9 });
    const parts: Buffer[] = [];
    gzip.on("data", (part: Buffer) => parts.push(part));
    gzip.on("end", () => resolve(Buffer.concat(parts)));
    gzip.on("error", reject);
    const zeros = Buffer.alloc(MIB);
    let left = mib;
    const write = () => {
      while (left-- > 0) if (!gzip.write(zeros)) return gzip.once("drain", write);
      gzip.end();
    };
    write();
  });
}

/** Frames one behind the other are one stream. */
function zstdOfZeros(mib: number): Buffer {
  const frame = zstdCompressSync(Buffer.alloc(64 * MIB));
  return Buffer.concat(Array.from({ length: mib / 64 }, () => frame));
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.length + at] = (copy.at(at) ?? 0) ^ 0xff;
  return copy;
}
