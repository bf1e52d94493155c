/** What screening says of numbers is what the database says of them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { canonicalJson, measure } from "../../src/event/json-text.ts";
import { randomFrom, seedOfRun } from "../ingest/history-generator.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  await database.drop();
});

/** How long the database writes the number, or null where it refuses it. */
async function storedLength(number: string): Promise<number | null> {
  try {
    const [row]: { n: number }[] = await database.db`SELECT length((${number}::text::jsonb)::text) AS n`;
    return row?.n ?? null;
  } catch (error) {
    if (error instanceof Error && error.message.includes("overflow")) return null;
    throw error;
  }
}

const BOUNDARY = [
  "1e131071",
  "1e131072",
  "9.99e131071",
  "0.1e131072",
  "0.001e131074",
  "0.001e131075",
  "123e131069",
  "123e131070",
  "1e-16383",
  "1e-16384",
  "1.0e-16382",
  "1.0e-16383",
  "100e-16385",
  "100e-16386",
  "0e-16383",
  "0e-16384",
  "0e131071",
  "0e2000000000",
  "0.000e-2000000000",
  "-0.0",
  "-1E+5",
  "1e-5",
  "1.50e1",
  "1".repeat(131_072),
  "1".repeat(131_073),
  `0.${"0".repeat(16_383)}`,
  `0.${"0".repeat(16_384)}`,
];

test.each(BOUNDARY)("%.30s", async (number) => {
  const measured = measure(number);
  const stored = await storedLength(number);
  expect(measured.overflow === null).toBe(stored !== null);
  // What shrinks (a sign that zero loses, 1.50e1) counts as it came.
  if (stored !== null) expect(number.length + measured.growth).toBe(Math.max(number.length, stored));
});

test("300 random numbers: same verdict, and equal exactly when the database says so", async () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  const digits = (n: number) => Array.from({ length: n }, () => Math.floor(random() * 10)).join("");
  const numbers = Array.from({ length: 300 }, () => {
    const whole = String(Number(digits(1 + Math.floor(random() * 5))));
    const fraction = random() < 0.5 ? `.${digits(1 + Math.floor(random() * 4))}` : "";
    const exponent = random() < 0.5 ? `e${random() < 0.5 ? "-" : ""}${Math.floor(random() * 6)}` : "";
    return `${random() < 0.3 ? "-" : ""}${whole}${fraction}${exponent}`;
  });
  try {
    for (const number of numbers) {
      const stored = await storedLength(number);
      if (stored === null) throw new Error(`${number} was refused`);
      expect(measure(number).overflow).toBeNull();
    }
    for (let n = 0; n < 300; n++) {
      const a = numbers[n] ?? "0";
      const b = numbers[Math.floor(random() * 300)] ?? "0";
      const shifted = `${a.includes("e") ? a : `${a}e0`}`;
      const rows: { ab: boolean; as: boolean }[] = await database.db`
        SELECT ${a}::text::jsonb = ${b}::text::jsonb AS ab, ${a}::text::jsonb = ${shifted}::text::jsonb AS as`;
      expect([a, b, canonicalJson(a) === canonicalJson(b)]).toEqual([a, b, rows[0]?.ab === true]);
      expect([a, canonicalJson(a) === canonicalJson(shifted)]).toEqual([a, rows[0]?.as === true]);
    }
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  }
});
