import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";

/**
 * Older Buns could hand one query another's rows when many were in flight over one pool. Nothing here works around
 * that: this test is what tells if it comes back.
 */
let own: TestDatabase;
beforeAll(async () => {
  own = await testDatabase();
});
afterAll(() => own.drop());

/** Queries of different shapes; each knows what it must get. */
const SHAPES: ((n: number) => Promise<void>)[] = [
  async (n) => {
    expect(await own.db`SELECT ${n}::int AS n`).toEqual([{ n }]);
  },
  async (n) => {
    const text = `text-${n}`.repeat(1 + (n % 50));
    expect(await own.db`SELECT ${text}::text AS text, ${n}::text AS number`).toEqual([
      { text, number: `${n}` },
    ]);
  },
  async (n) => {
    const rows =
      await own.db`SELECT g AS g, g * ${n}::int AS product FROM generate_series(1, ${n % 20}::int) g`;
    expect(rows).toEqual(Array.from({ length: n % 20 }, (_, at) => ({ g: at + 1, product: (at + 1) * n })));
  },
  async (n) => {
    const rows =
      await own.db`SELECT x->>'n' AS n FROM json_array_elements(${JSON.stringify([{ n }, { n: -n }])}::text::json) x`;
    expect(rows).toEqual([{ n: `${n}` }, { n: `${-n}` }]);
  },
  async (n) => {
    await expect(own.db`SELECT 1 / (${n}::int - ${n}::int)`).rejects.toThrow("division by zero");
  },
  async (n) => {
    const inside = await own.db.begin(async (tx) => {
      await tx`SELECT set_config('tally.canary', ${`${n}`}, true)`;
      const [row] = await tx`SELECT current_setting('tally.canary') AS canary, pg_sleep(0.001)::text`;
      return row.canary;
    });
    expect(inside).toBe(`${n}`);
  },
];

test("hundreds of interleaved queries over one pool each get their own rows", async () => {
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      Array.from({ length: 300 }, (_, at) => {
        const n = round * 300 + at;
        return SHAPES[n % SHAPES.length]?.(n);
      }),
    );
  }
  expect.assertions(5 * 300);
});
