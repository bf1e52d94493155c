/** What the benchmark and its load generator, a process of its own, tell each other: one JSON line each way. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** Where a contestant's batches go. `items` is one statement after the other for each item. */
const Target = Type.Union([
  Type.Object({ kind: Type.Literal("api"), url: Type.String(), token: Type.String() }),
  Type.Object({ kind: Type.Literal("floor"), databaseUrl: Type.String() }),
  Type.Object({ kind: Type.Literal("items"), databaseUrl: Type.String() }),
]);
export type Target = Static<typeof Target>;

export const Job = Type.Object({
  target: Target,
  connections: Type.Integer(),
  /** Batches that are sent before the clock starts, so that connections stand and statements are prepared. */
  warmup: Type.Integer(),
  /** Batches that are timed. */
  batches: Type.Integer(),
  /** Instead of a number of batches: go on for so long, each batch made as it is sent. Only for `api`. */
  seconds: Type.Union([Type.Number(), Type.Null()]),
});
export type Job = Static<typeof Job>;

export const Outcome = Type.Object({
  /** From the first timed batch's start to the last one's end. */
  seconds: Type.Number(),
  /** Timed events. */
  events: Type.Integer(),
  /** Of one batch, each in milliseconds. */
  latencies: Type.Array(Type.Number()),
  /** CPU seconds that the generator itself took while the clock ran. */
  cpuSeconds: Type.Number(),
});
export type Outcome = Static<typeof Outcome>;

/** Reads a line that the other side wrote. @throws for anything else */
export function parseLine<T extends TSchema>(schema: T, line: string): Static<T> {
  return Value.Parse(schema, JSON.parse(line));
}

/** The lines of a stream. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}
