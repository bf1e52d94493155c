/**
 * The bounds that an event is held to. Lengths are UTF-8 bytes: they protect index tuples, and a value past the
 * btree limit would fail the insert rather than the event.
 */
export const EVENT_ID_MAX_BYTES = 256;
export const EVENT_TYPE_MAX_BYTES = 512;
/** platform, cloud, resource_type, resource_id, project_id. */
export const IDENTIFIER_MAX_BYTES = 512;
export const STATE_MAX_BYTES = 512;
/** One item, as it came and as the database would write it. */
export const ITEM_MAX_BYTES = 256 * 1024;
/** Levels of containers in an item, its own being 1. */
export const ITEM_MAX_DEPTH = 64;
/** A larger refused item is not kept, only its length. */
export const DEAD_LETTER_MAX_BYTES = 64 * 1024;
/** So much of a refused item's event id is told: more than an event id can have, and not all that a payload can. */
export const ECHO_MAX_BYTES = 1_024;
/** Items of one request. */
export const BATCH_MAX_ITEMS = 1_000;

export const EVENT_TYPE_PATTERN = /^[a-z0-9_]+(\.[a-z0-9_]+)+$/;

/** Platforms, and clouds, of the virtual projects, which never carry resources. */
export const VIRTUAL_PLATFORMS: ReadonlySet<string> = new Set(["meta", "partner"]);

/** The UTF-8 length of a text, in bytes. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}
