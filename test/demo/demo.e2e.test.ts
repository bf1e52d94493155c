/** `tally demo` of the built executable, with an empty environment, as a person at a terminal meets it. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const TALLY = fileURLToPath(new URL("../../dist/tally", import.meta.url));

interface Demo {
  readonly pid: number;
  readonly exited: Promise<number>;
  /** Not yet ended: its number is still its own. */
  runs(): boolean;
  output(): string;
  errors(): string;
  /** Waits until it has printed the text. */
  printed(text: string): Promise<void>;
  /** As a terminal does it: to all processes of the foreground. */
  ctrlC(): void;
}

const started: Demo[] = [];

function start(...options: string[]): Demo {
  const child = Bun.spawn(["/usr/bin/setsid", TALLY, "demo", ...options], {
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let output = "";
  let errors = "";
  const collect = async (stream: ReadableStream<Uint8Array>, take: (text: string) => void) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
  };
  const drained = Promise.all([
    collect(child.stdout, (text) => {
      output += text;
    }),
    collect(child.stderr, (text) => {
      errors += text;
    }),
  ]);
  const demo: Demo = {
    pid: child.pid,
    exited: child.exited.then(async (code) => {
      await drained;
      return code;
    }),
    runs: () => child.exitCode === null && child.signalCode === null,
    output: () => output,
    errors: () => errors,
    async printed(text) {
      while (!output.includes(text)) {
        if (child.exitCode !== null) throw new Error(`ended without "${text}": ${output}${errors}`);
        await Bun.sleep(20);
      }
    },
    ctrlC: () => process.kill(-child.pid, "SIGINT"),
  };
  started.push(demo);
  return demo;
}

/** The directory that its first line names. */
function directoryOf(demo: Demo): string {
  return /in (\/\S+) …/.exec(demo.output())?.[1] ?? "";
}

/** The command lines of processes that name the directory. */
function processesIn(directory: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        // It ended in between.
        return "";
      }
    })
    .filter((line) => line.includes(directory));
}

afterAll(() => {
  for (const demo of started) {
    if (demo.runs()) process.kill(-demo.pid, "SIGKILL");
  }
});

test("--exit ends well after showing everything, in plain text, and leaves nothing", async () => {
  const demo = start("--exit");
  expect(await demo.exited).toBe(0);
  expect(demo.errors()).toBe("");
  expect(demo.output()).toContain("the recording        138           0         0");
  expect(demo.output()).toContain("the same again         0         138         0");
  expect(demo.output()).toContain("Zürich-研究");
  expect(demo.output()).toContain(
    "Booked: 1 created, 2 updated, 2 deleted. The run ten minutes later: 0, 0 and 0.",
  );
  expect(demo.output()).not.toContain("\u001b");
  expect(directoryOf(demo)).toStartWith("/tmp/tally-demo-");
  expect(existsSync(directoryOf(demo))).toBeFalse();
});

describe("without --exit", () => {
  test("the curl lines work as they are printed, and Ctrl-C ends it all", async () => {
    const demo = start();
    await demo.printed("until you press Ctrl-C");
    const lines = demo
      .output()
      .split("\n")
      .filter((line) => line.startsWith("curl "));
    const answers = lines.map((line) => {
      const { stdout, exitCode } = Bun.spawnSync(["sh", "-c", `${line} -f`]);
      return exitCode === 0 ? stdout.toString() : `exit code ${exitCode}`;
    });
    const [servers = "", life = "", ingested = "", synced = "", metrics = ""] = answers;
    expect(answers).toHaveLength(5);
    expect(JSON.parse(servers).items).toHaveLength(7);
    expect(JSON.parse(life).intervals).toHaveLength(9);
    expect(JSON.parse(ingested)).toEqual({ accepted: 0, duplicates: 1, rejected: [] });
    expect(JSON.parse(synced)).toMatchObject({ stats: { created: 0, updated: 0, deleted: 0 } });
    expect(metrics).toContain("tally_events_ingested_total");
    const page = /http:\S+\/docs/.exec(demo.output())?.[0] ?? "";
    expect((await fetch(page)).status).toBe(200);

    demo.ctrlC();
    expect(await demo.exited).toBe(0);
    expect(demo.errors()).toBe("");
    expect(existsSync(directoryOf(demo))).toBeFalse();
    expect(processesIn(directoryOf(demo))).toEqual([]);
  });

  test("Ctrl-C while it starts ends it without a word of complaint", async () => {
    const demo = start();
    await demo.printed("Starting");
    await Bun.sleep(500);
    demo.ctrlC();
    expect(await demo.exited).toBe(0);
    expect(demo.errors()).toBe("");
    expect(demo.output()).not.toContain("It runs on");
    expect(existsSync(directoryOf(demo))).toBeFalse();
    expect(processesIn(directoryOf(demo))).toEqual([]);
  });
});
