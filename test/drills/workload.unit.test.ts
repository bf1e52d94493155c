/** The known set of events: what a batch is made of, by its number. */
import { expect, test } from "bun:test";
import { type Batch, Workload } from "../../scripts/drills/rig/workload.ts";

function batchesOf(items: number, seed: number): Batch[] {
  const workload = new Workload({ run: "set", seed, items });
  return Array.from({ length: 40 }, (_, number) => workload.batch(number));
}

/** Numbers of the batches for which that holds. */
function numbers(batches: readonly Batch[], holds: (batch: Batch) => boolean): number[] {
  return batches.filter(holds).map(({ number }) => number);
}

test("among small batches one in ten is large, and one in ten has an item to refuse: a small one and a large one", () => {
  // (number + 3) mod 20 is 0 or 10 for a large one, 0 or 5 for one with an item to refuse.
  const batches = batchesOf(50, 3);
  expect(numbers(batches, ({ items }) => items === 120)).toEqual([7, 17, 27, 37]);
  expect(numbers(batches, ({ items }) => items === 50)).toHaveLength(36);
  expect(numbers(batches, ({ refused }) => refused.length === 1)).toEqual([2, 17, 22, 37]);
  expect(numbers(batches, ({ refused }) => refused.length === 0)).toHaveLength(36);
});

test("among large batches one in ten is small enough to be put together with others", () => {
  const batches = batchesOf(200, 20);
  expect(numbers(batches, ({ items }) => items === 40)).toEqual([0, 10, 20, 30]);
  expect(numbers(batches, ({ items }) => items === 200)).toHaveLength(36);
});

test("a batch is the same whenever it is made, and its items are its events and its refused ones", () => {
  for (const batch of batchesOf(50, 3)) {
    const again = new Workload({ run: "set", seed: 3, items: 50 }).batch(batch.number);
    expect(again).toEqual(batch);
    const items: unknown[] = JSON.parse(batch.body);
    expect(items).toHaveLength(batch.items);
    const whole = batch.events.map((text) => JSON.parse(text));
    for (const { index, eventId, text } of batch.refused) {
      whole.splice(index, 0, JSON.parse(text));
      expect(items[index]).toMatchObject({
        event_id: eventId,
        event_type: "volume.resize.end",
        payload: {},
      });
    }
    expect(items).toEqual(whole);
  }
});

test("a uniform set has neither", () => {
  const workload = new Workload({ run: "set", seed: 3, items: 50, uniform: true });
  for (let number = 0; number < 20; number++)
    expect(workload.batch(number)).toMatchObject({ items: 50, refused: [] });
});
