/** Log lines: JSON, one each, with the request's id and without secrets. */
import { describe, expect, test } from "bun:test";
import { createLogger, type LogLevel, withRequestId } from "../../src/telemetry/log.ts";

function capture(level: LogLevel = "DEBUG") {
  const lines: string[] = [];
  return { log: createLogger(level, (line) => lines.push(line)), lines };
}

describe("a line", () => {
  test("is one JSON object with timestamp, level, message and its fields", () => {
    const { log, lines } = capture();
    log.warn("a\nbatch", { count: 3, cloud: "os" });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^[^\n]+\n$/);
    const { timestamp, ...rest } = JSON.parse(lines[0] ?? "");
    expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(rest).toEqual({ level: "WARN", message: "a\nbatch", count: 3, cloud: "os" });
  });

  const levels: [level: LogLevel, written: string[]][] = [
    ["DEBUG", ["DEBUG", "INFO", "WARN", "ERROR"]],
    ["INFO", ["INFO", "WARN", "ERROR"]],
    ["WARN", ["WARN", "ERROR"]],
    ["ERROR", ["ERROR"]],
  ];
  test.each(levels)("is written from %s on", (level, written) => {
    const { log, lines } = capture(level);
    log.debug("x");
    log.info("x");
    log.warn("x");
    log.error("x");
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(written);
  });

  test("tells an error's name, code, message, stack and cause", () => {
    const { log, lines } = capture();
    const cause = new TypeError("inner");
    log.error("failed", {
      error: Object.assign(new Error("outer", { cause }), { code: "E1", errno: "40P01" }),
    });
    const { error } = JSON.parse(lines[0] ?? "");
    expect(error).toMatchObject({ name: "Error", code: "E1", errno: "40P01", message: "outer" });
    expect(error.stack).toContain("log.unit.test");
    expect(error.cause).toMatchObject({ name: "TypeError", message: "inner" });
  });

  test("never holds a token, wherever it came from", () => {
    const { log, lines } = capture();
    const token = `tly_i_${"ab12".repeat(16)}`;
    log.info(`got ${token}`, { header: `Bearer ${token}`, error: new Error(token), [token]: 1 });
    expect(lines[0]).not.toContain("ab12ab12");
    expect(lines[0]).toContain("tly_i_[hidden]");
  });
});

describe("logging never throws", () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const hostile: [what: string, fields: Record<string, unknown>][] = [
    ["a circle", circular],
    ["a bigint", { n: 10n ** 30n }],
    ["undefined", { x: undefined }],
    ["a symbol", { s: Symbol("s") }],
    ["a lone surrogate", { s: "\ud800" }],
    [
      "a getter that throws",
      {
        nested: Object.defineProperty({}, "x", {
          enumerable: true,
          get() {
            throw new Error("no");
          },
        }),
      },
    ],
  ];
  test.each(hostile)("with %s", (_, fields) => {
    const { log } = capture();
    expect(() => log.info("x", fields)).not.toThrow();
  });

  test("when nothing can be written", () => {
    const log = createLogger("INFO", () => {
      throw new Error("EPIPE");
    });
    expect(() => log.info("x")).not.toThrow();
  });

  test("when stdout's reader went away", async () => {
    const script = `
      const { createLogger } = await import(${JSON.stringify(`${import.meta.dir}/../../src/telemetry/log.ts`)});
      const log = createLogger("INFO");
      for (let i = 0; i < 2000; i++) { log.info("x".repeat(200)); if (i % 100 === 0) await Bun.sleep(1); }
      console.error("survived");`;
    const child = Bun.spawn(["sh", "-c", '"$0" -e "$1" | head -1 > /dev/null', process.execPath, script], {
      stderr: "pipe",
    });
    expect(await new Response(child.stderr).text()).toContain("survived");
  });
});

describe("request_id", () => {
  test("is on every line that a request causes, also later and beside others", async () => {
    const { log, lines } = capture();
    const work = async (name: string, ms: number) => {
      log.info(`${name} begins`);
      await Bun.sleep(ms);
      log.info(`${name} ends`);
    };
    await Promise.all([
      withRequestId("a", () => work("a", 20)),
      withRequestId("b", () => work("b", 5)),
      work("none", 10),
    ]);
    const seen = lines
      .map((line) => JSON.parse(line))
      .map(({ message, request_id }) => [message, request_id]);
    expect(seen).toEqual([
      ["a begins", "a"],
      ["b begins", "b"],
      ["none begins", undefined],
      ["b ends", "b"],
      ["none ends", undefined],
      ["a ends", "a"],
    ]);
  });
});
