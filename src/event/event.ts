/** The canonical event, as it is stored. The rules it is held to stand in `validate.ts`. */
import type { Instant } from "./instant.ts";

/** The pipeline that an event came through. */
export type Source = "collector" | "reconciliation";

/** What identifies a resource. */
export interface ResourceKey {
  readonly cloud: string;
  readonly resourceType: string;
  readonly resourceId: string;
}

/** One immutable lifecycle fact, as the events table holds it. */
export interface StoredEvent extends ResourceKey {
  readonly eventId: string;
  readonly timestamp: Instant;
  readonly eventType: string;
  readonly platform: string;
  /** The project owning the resource at or after this event. */
  readonly projectId: string;
  readonly source: Source;
  /** The payload's JSON text as the database normalized it; null for a delete without one. */
  readonly payload: string | null;
  /** When Tally stored it: the transaction's instant plus one microsecond a position in its batch. */
  readonly receivedAt: Instant;
}

/** The effect that an event has on its resource. */
export type Category = "create" | "update" | "delete";

const categories = new Map<string, Category>();

/**
 * A part `create` makes a create, else a part `delete` a delete, else it is an update
 * (`volume.create_snapshot.end` is an update: the part is `create_snapshot`).
 */
export function categorize(eventType: string): Category {
  const known = categories.get(eventType);
  if (known !== undefined) return known;
  const parts = eventType.split(".");
  const category = parts.includes("create") ? "create" : parts.includes("delete") ? "delete" : "update";
  // Bounded: a collector could send ever new types, and screening asks of over-long ones, too.
  if (categories.size < 1_000 && eventType.length <= 512) categories.set(eventType, category);
  return category;
}
