/** The parts of the API's answers that the demo shows, checked as they come in: it is a client like any other. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** IngestResult. */
export const Ingested = Type.Object({
  accepted: Type.Integer(),
  duplicates: Type.Integer(),
  rejected: Type.Array(Type.Object({ event_id: Type.String(), reason: Type.String() })),
});
export type Ingested = Static<typeof Ingested>;

/** ResourceList. */
export const Inventory = Type.Object({
  items: Type.Array(Type.Object({ resource_type: Type.String(), state: Type.String() })),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
});
export type InventoryItem = Static<typeof Inventory>["items"][number];

/** Lifecycle. */
export const Life = Type.Object({
  resource: Type.Object({ deleted_at: Type.Union([Type.String(), Type.Null()]) }),
  events: Type.Array(Type.Unknown()),
  intervals: Type.Array(
    Type.Object({
      from: Type.String(),
      to: Type.Union([Type.String(), Type.Null()]),
      state: Type.String(),
      size: Type.Record(Type.String(), Type.Unknown()),
      project_id: Type.String(),
    }),
  ),
  warnings: Type.Array(Type.String()),
});
export type Life = Static<typeof Life>;

/** SyncResult. */
export const SyncResult = Type.Object({
  stats: Type.Object({ created: Type.Integer(), updated: Type.Integer(), deleted: Type.Integer() }),
  corrections: Type.Optional(
    Type.Array(
      Type.Object({
        event_type: Type.String(),
        timestamp: Type.String(),
        resource_type: Type.String(),
        resource_id: Type.String(),
        reason: Type.String(),
      }),
    ),
  ),
});
export type SyncResult = Static<typeof SyncResult>;

/** Something the demo asked for and didn't get. */
export class DemoFailed extends Error {
  override readonly name = "DemoFailed";
}

/**
 * Sends one request with a bearer token and reads the answer.
 * @throws {DemoFailed} unless it is a 200 of the expected shape
 */
export async function ask<S extends TSchema>(
  schema: S,
  url: string,
  token: string,
  init: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<Static<S>> {
  const response = await fetch(url, {
    ...init,
    headers: { ...init.headers, authorization: `Bearer ${token}` },
  });
  const text = await response.text();
  if (response.status !== 200) throw new DemoFailed(`${url} answered ${response.status}: ${text}`);
  const value: unknown = JSON.parse(text);
  if (!Value.Check(schema, value)) throw new DemoFailed(`${url} answered an unexpected shape: ${text}`);
  return value;
}
