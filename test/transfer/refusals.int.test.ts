/** Streams and databases that an import won't take, and imports that broke. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { migrateUp } from "../../src/database/migrations.ts";
import { probeDatabase } from "../../src/telemetry/probe.ts";
import { compressed, decompressed } from "../../src/transfer/compression.ts";
import { exportAll } from "../../src/transfer/export.ts";
import { blockLine, firstLink, nextLink } from "../../src/transfer/format.ts";
import { importAll } from "../../src/transfer/import.ts";
import { StreamReader } from "../../src/transfer/reader.ts";
import { emptyDatabase, type TestDatabase, testDatabase } from "../support/database.ts";
import { digests, fill, NEWEST, streaming, streamOf } from "./rich-database.ts";

let source: TestDatabase;
let parts: Uint8Array[];
let whole: Buffer;
beforeAll(async () => {
  source = await testDatabase();
  await fill(source);
  parts = await streamOf(source.db);
  whole = Buffer.concat(parts);
});
afterAll(() => source.drop());

/** What reading a stream to its end says; null: that it is whole. */
async function verdict(bytes: AsyncIterable<Uint8Array>): Promise<string | null> {
  try {
    const reader = await StreamReader.open(bytes, NEWEST);
    for await (const block of reader.blocks()) void block;
    return reader.end.blocks > 0 ? null : "nothing";
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

describe("a damaged stream", () => {
  test("the whole one is whole, in chunks of any size", async () => {
    expect(await verdict(streaming(...parts))).toBeNull();
    const chunks = [];
    for (let at = 0; at < whole.length; at += 777) chunks.push(whole.subarray(at, at + 777));
    expect(await verdict(streaming(...chunks))).toBeNull();
  });

  test("any byte that changed is found", async () => {
    const step = Math.floor(whole.length / 200);
    for (let at = 0; at < whole.length; at += step)
      expect(await verdict(streaming(flipped(whole, at)))).toMatch(
        /^StreamRefused: .*(damaged|not whole|newer)/,
      );
  });

  test("any byte that changed in the compressed one is found", async () => {
    const frames = [];
    for await (const frame of compressed(streaming(...parts))) frames.push(frame);
    const packed = Buffer.concat(frames);
    expect(await verdict(decompressed(streaming(packed)))).toBeNull();
    const step = Math.floor(packed.length / 100);
    for (let at = 0; at < packed.length; at += step) {
      const found = await verdict(decompressed(streaming(flipped(packed, at))));
      // A bit of a frame's header may mean nothing: then what it holds is whole.
      if (found !== null) expect(found).toMatch(/^StreamRefused: .*(damaged|not whole|no export|newer)/);
    }
  });

  test("the place is named: the block, the table, the row", async () => {
    const block = parts.findIndex((part) => Buffer.from(part).includes('"table":"events"')) + 2;
    const damaged = parts.map((part, at) => (at === block ? flipped(part, part.length - 30) : part));
    expect(await verdict(streaming(...damaged))).toBe(
      `StreamRefused: the stream is damaged in block ${block} (table events, behind row 40)`,
    );
  });

  test("one that was cut off anywhere isn't whole", async () => {
    const step = Math.floor(whole.length / 100);
    for (let length = 0; length < whole.length; length += step)
      expect(await verdict(streaming(whole.subarray(0, length)))).toMatch(/no export|not whole/);
    expect(await verdict(streaming(...parts.slice(0, -1)))).toMatch(
      /^StreamRefused: the stream ends or is damaged behind block \d+ \(table events, row 300\): it is not whole$/,
    );
    const frames = [];
    for await (const frame of compressed(streaming(...parts))) frames.push(frame);
    const packed = Buffer.concat(frames);
    for (const cut of [1, 10, 1000])
      expect(await verdict(decompressed(streaming(packed.subarray(0, -cut))))).toMatch(/not whole/);
  });

  test("blocks that were lost, doubled or swapped are found", async () => {
    const [a, b, c] = [parts.slice(0, 3), parts.slice(3, 4), parts.slice(4)];
    expect(await verdict(streaming(...a, ...c))).toMatch(/damaged behind block 2/);
    expect(await verdict(streaming(...a, ...b, ...b, ...c))).toMatch(/damaged behind block 3/);
    expect(await verdict(streaming(...a, ...c.slice(0, 1), ...b, ...c.slice(1)))).toMatch(
      /damaged behind block 2/,
    );
  });

  test("nothing may follow its last line", async () => {
    expect(await verdict(streaming(...parts, Buffer.from("\n")))).toBe(
      "StreamRefused: the stream is damaged behind its last line",
    );
  });

  test("something else is no stream", async () => {
    const no = "StreamRefused: this is no export of Tally, or damaged at its very beginning";
    for (const text of ["", "\n", "{}\n", "hello\n", '{"tally":"backup"}\n'])
      expect(await verdict(decompressed(streaming(Buffer.from(text))))).toBe(no);
  });

  test("a newer Tally's is refused before anything is read", async () => {
    const header = JSON.parse(Buffer.from(parts[0] ?? []).toString());
    for (const newer of [{ format: 2 }, { schema: NEWEST + 1 }]) {
      const line = Buffer.from(`${JSON.stringify({ ...header, ...newer })}\n`);
      expect(await verdict(streaming(line, ...parts.slice(1)))).toMatch(
        /made by a newer Tally \(0\.0\.0-test/,
      );
    }
  });
});

/** Imports, and says how it ended. */
async function imported(target: TestDatabase, bytes: AsyncIterable<Uint8Array>): Promise<string> {
  try {
    const reader = await StreamReader.open(bytes, NEWEST);
    const { resumedAt } = await importAll(target.db, "t", reader);
    return `whole, from block ${resumedAt}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The parts, and then a failure, as when a pipe breaks. */
async function* breaking(...some: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* some;
  throw new Error("the pipe broke");
}

describe("an import that broke", () => {
  test("goes on where it stopped, as often as it breaks", async () => {
    const target = await emptyDatabase();
    for (const blocks of [0, 3, 9, parts.length - 3]) {
      expect(await imported(target, breaking(...parts.slice(0, 1 + blocks)))).toContain("the pipe broke");
      expect(await probeDatabase(target.db)).toMatch(/import into the database hasn't ended/);
      const [row] = await target.db`SELECT blocks FROM import_progress`;
      expect(row?.blocks).toBe(blocks);
    }
    expect(await imported(target, streaming(...parts))).toBe(`whole, from block ${parts.length - 3}`);
    expect(await probeDatabase(target.db)).toBeNull();
    const { audit_log: _, ...rest } = await digests(target.db);
    expect(await digests(source.db)).toMatchObject(rest);
    await target.drop();
  });

  test("goes on with another stream of the unchanged source", async () => {
    const target = await emptyDatabase();
    await imported(target, breaking(...parts.slice(0, 8)));
    expect(await imported(target, streaming(...(await streamOf(source.db))))).toBe("whole, from block 7");
    await target.drop();
  });

  test("doesn't go on with another stream", async () => {
    const target = await emptyDatabase();
    await imported(target, breaking(...parts.slice(0, 8)));
    const before = await digests(target.db);
    const other = await streamOf(source.db, { rows: 3, bytes: 16_384 });
    expect(await imported(target, streaming(...other))).toMatch(/a part of another stream/);
    expect(await imported(target, streaming(...(await shorter())))).toMatch(/a part of another stream/);
    expect(await digests(target.db)).toEqual(before);
    await target.drop();
  });

  test("can't be exported", async () => {
    const target = await emptyDatabase();
    await imported(target, breaking(...parts.slice(0, 8)));
    expect(exportAll(target.db, "x", async () => {})).rejects.toThrow(
      "import into this database hasn't ended",
    );
    await target.drop();
  });

  test("two at once: one of them does it, and nothing is there twice", async () => {
    const target = await emptyDatabase();
    await imported(target, breaking(...parts.slice(0, 2)));
    const both = await Promise.all([
      imported(target, streaming(...parts)),
      imported(target, streaming(...parts)),
    ]);
    expect(both.sort()).toEqual(["another import is at work on this database", "whole, from block 1"]);
    const { audit_log: _, ...rest } = await digests(target.db);
    expect(await digests(source.db)).toMatchObject(rest);
    await target.drop();
  });
});

/** A whole stream of one block. */
async function shorter(): Promise<Uint8Array[]> {
  const own = await testDatabase();
  const small = await streamOf(own.db);
  await own.drop();
  return small;
}

describe("a database that isn't empty", () => {
  test("is refused, and told of; nothing in it changes", async () => {
    const own = await testDatabase();
    await own.db`INSERT INTO projects (platform, cloud, external_id) VALUES ('p', 'c', 'e')`;
    const before = await digests(own.db);
    expect(await imported(own, streaming(...parts))).toBe(
      "an import goes into an empty database, and this one holds rows already (projects)",
    );
    expect(await digests(own.db)).toEqual(before);
    expect(await probeDatabase(own.db)).toBeNull();
    await own.drop();
  });

  test("is noticed when it fills meanwhile", async () => {
    const target = await emptyDatabase();
    await migrateUp(target.db);
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield* parts.slice(0, -1);
      await target.db`INSERT INTO projects (platform, cloud, external_id) VALUES ('p', 'c', 'e')`;
      yield* parts.slice(-1);
    }
    expect(await imported(target, slow())).toMatch(
      /^table projects doesn't hold what the stream holds: 6 rows .* 5 rows .*was something written to it meanwhile/,
    );
    await target.drop();
  });
});

test("a row that the table refuses ends the import with the database's own words", async () => {
  const target = await emptyDatabase();
  const header = parts[0] ?? new Uint8Array();
  const lines = Buffer.from('["no uuid","2026-01-01","p","c","e",null,{}]\n');
  const sha256 = nextLink(firstLink({ format: 1, schema: NEWEST }), "projects", lines);
  const head = blockLine({ block: 1, table: "projects", rows: 1, bytes: lines.length, sha256 });
  expect(await imported(target, streaming(header, Buffer.from(`${head}\n`), lines))).toMatch(
    /invalid input syntax for type uuid/,
  );
  await target.drop();
});
