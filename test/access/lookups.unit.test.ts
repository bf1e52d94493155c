/** Look-ups that are shared: never one that began before the request came. */
import { expect, test } from "bun:test";
import { Lookups } from "../../src/access/lookups.ts";

/** Look-ups whose ends the test decides. */
function controlled() {
  const begun: { key: string; end: PromiseWithResolvers<string> }[] = [];
  const lookups = new Lookups((key: string) => {
    const end = Promise.withResolvers<string>();
    begun.push({ key, end });
    return end.promise;
  });
  const end = async (n: number, result: string) => {
    begun[n]?.end.resolve(result);
    await Bun.sleep(0);
  };
  return { lookups, begun, end };
}

test("two go at once, the rest share one that begins after them", async () => {
  const { lookups, begun, end } = controlled();
  const found = Array.from({ length: 6 }, () => lookups.find("a"));
  expect(begun).toHaveLength(2);
  await end(0, "first");
  expect(begun).toHaveLength(3);
  // It comes after the third began: it waits for a fourth.
  const late = lookups.find("a");
  await end(1, "second");
  await end(2, "third");
  await end(3, "fourth");
  expect(await Promise.all(found)).toEqual(["first", "second", "third", "third", "third", "third"]);
  expect(await late).toBe("fourth");
  expect(begun).toHaveLength(4);
});

test("one after the other, each is looked up", async () => {
  const { lookups, begun, end } = controlled();
  for (const n of [0, 1, 2]) {
    const found = lookups.find("a");
    await end(n, String(n));
    expect(await found).toBe(String(n));
  }
  expect(begun).toHaveLength(3);
});

test("keys are apart", async () => {
  const { lookups, begun } = controlled();
  for (const key of ["a", "a", "a", "b"]) lookups.find(key);
  expect(begun.map(({ key }) => key)).toEqual(["a", "a", "b"]);
});

test("what fails fails for those that shared it, and for nobody after", async () => {
  const { lookups, begun, end } = controlled();
  const found = Array.from({ length: 4 }, () => lookups.find("a"));
  const outcomes = Promise.allSettled(found);
  await end(0, "first");
  await end(1, "second");
  begun[2]?.end.reject(new Error("away"));
  expect((await outcomes).map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "rejected",
  ]);
  const next = lookups.find("a");
  await end(3, "there");
  expect(await next).toBe("there");
});
