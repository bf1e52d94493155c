/**
 * The rules that an event is held to before anything is known of who sent it: `schema: …` refusals.
 * All broken rules are reported at once, each `<member>: <what>`. Pure.
 */
import {
  byteLength,
  EVENT_ID_MAX_BYTES,
  EVENT_TYPE_MAX_BYTES,
  EVENT_TYPE_PATTERN,
  IDENTIFIER_MAX_BYTES,
  ITEM_MAX_BYTES,
  ITEM_MAX_DEPTH,
  STATE_MAX_BYTES,
  VIRTUAL_PLATFORMS,
} from "./bounds.ts";
import { type Category, categorize } from "./event.ts";
import { type Instant, parseInstant } from "./instant.ts";
import type { Measure } from "./json-text.ts";

/** An event that broke no rule, its payload still being text of the request. */
export interface ValidEvent {
  readonly eventId: string;
  readonly timestamp: Instant;
  readonly eventType: string;
  readonly platform: string;
  readonly cloud: string;
  readonly resourceType: string;
  readonly resourceId: string;
  readonly projectId: string;
  /** Null where the event reports none. */
  readonly state: string | null;
  /** The parsed size, for its schema; null where the event reports none. */
  readonly size: JsonObject | null;
}

export type JsonObject = { readonly [member: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a value is, in JSON's words. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return `a ${typeof value}`;
}

/**
 * Holds one item to the rules.
 *
 * @param item the parsed item, for its text members and types
 * @param text the item's own text: bounds on bytes, nesting and numbers are decided on what will be stored
 * @param measured what `measure` makes of the text
 * @returns the event, or the faults
 */
export function validateEvent(
  item: unknown,
  text: string,
  measured: Measure,
): ValidEvent | readonly string[] {
  if (!isJsonObject(item)) return [`the item must be a JSON object, got ${kindOf(item)}`];
  const faults: string[] = [];
  checkMeasure(text, measured, faults);
  if (faults.length === 0 && holdsLoneSurrogate(item, text)) {
    faults.push("the item carries a lone surrogate, which is no Unicode text");
  }

  const eventId = readText(item, "event_id", EVENT_ID_MAX_BYTES, faults);
  const timestamp = readTimestamp(item, faults);
  const eventType = readEventType(item, faults);
  const platform = readText(item, "platform", IDENTIFIER_MAX_BYTES, faults);
  const cloud = readText(item, "cloud", IDENTIFIER_MAX_BYTES, faults);
  refuseVirtual("platform", platform, "platform", faults);
  refuseVirtual("cloud", cloud, "cloud", faults);
  const resourceType = readText(item, "resource_type", IDENTIFIER_MAX_BYTES, faults);
  const resourceId = readText(item, "resource_id", IDENTIFIER_MAX_BYTES, faults);
  const projectId = readText(item, "project_id", IDENTIFIER_MAX_BYTES, faults);
  readSource(item, faults);
  const { state, size } = readPayload(item, categoryOf(item), faults);

  if (
    faults.length > 0 ||
    eventId === null ||
    timestamp === null ||
    eventType === null ||
    platform === null ||
    cloud === null ||
    resourceType === null ||
    resourceId === null ||
    projectId === null
  ) {
    return faults;
  }
  return { eventId, timestamp, eventType, platform, cloud, resourceType, resourceId, projectId, state, size };
}

function checkMeasure(text: string, { depth, overflow, growth }: Measure, faults: string[]): void {
  // A UTF-16 unit is at most three bytes of UTF-8: most items need no counting.
  const bytes = text.length * 3 <= ITEM_MAX_BYTES ? text.length : byteLength(text);
  if (bytes > ITEM_MAX_BYTES) faults.push(`the item must be at most ${ITEM_MAX_BYTES} bytes, got ${bytes}`);
  if (depth > ITEM_MAX_DEPTH)
    faults.push(`the item must nest at most ${ITEM_MAX_DEPTH} levels deep, got ${depth}`);
  if (overflow !== null) faults.push(`the item carries a number that cannot be stored: ${overflow}`);
  // A few bytes like 1e131071 become 131,072 digits: a short item must not fill the disk.
  if (bytes <= ITEM_MAX_BYTES && bytes + growth > ITEM_MAX_BYTES) {
    faults.push(
      `the item must be at most ${ITEM_MAX_BYTES} bytes with its exponents spelled out, got ${bytes + growth}`,
    );
  }
}

/** Request bodies are strict UTF-8, so a lone surrogate can only come from an escape. */
function holdsLoneSurrogate(item: JsonObject, text: string): boolean {
  if (!text.includes("\\u")) return false;
  const isIllFormed = (value: unknown): boolean => {
    if (typeof value === "string") return !value.isWellFormed();
    if (Array.isArray(value)) return value.some(isIllFormed);
    if (!isJsonObject(value)) return false;
    return Object.entries(value).some(([key, member]) => !key.isWellFormed() || isIllFormed(member));
  };
  return isIllFormed(item);
}

/** A required member of 1 to `maxBytes` bytes. */
function readText(from: JsonObject, name: string, maxBytes: number, faults: string[]): string | null {
  const value = stringMember(from, name, faults);
  return value === null || brokenLength(name, value, maxBytes, faults) ? null : value;
}

function stringMember(from: JsonObject, name: string, faults: string[]): string | null {
  const value = from[name];
  if (value === undefined) faults.push(`${name}: is missing`);
  else if (typeof value !== "string") faults.push(`${name}: must be a string, got ${kindOf(value)}`);
  else return value;
  return null;
}

function brokenLength(name: string, value: string, maxBytes: number, faults: string[]): boolean {
  if (value.length > 0 && value.length * 3 <= maxBytes) return false;
  const bytes = byteLength(value);
  if (bytes >= 1 && bytes <= maxBytes) return false;
  faults.push(`${name}: must be 1 to ${maxBytes} bytes, got ${bytes}`);
  return true;
}

function readTimestamp(item: JsonObject, faults: string[]): Instant | null {
  const text = stringMember(item, "timestamp", faults);
  if (text === null) return null;
  const instant = parseInstant(text);
  if (typeof instant === "bigint") return instant;
  faults.push(`timestamp: ${instant}`);
  return null;
}

function readEventType(item: JsonObject, faults: string[]): string | null {
  // The length comes before the pattern, so that an over-long type is never quoted back.
  const value = readText(item, "event_type", EVENT_TYPE_MAX_BYTES, faults);
  if (value === null || EVENT_TYPE_PATTERN.test(value)) return value;
  faults.push(`event_type: ${JSON.stringify(value)} does not match ${EVENT_TYPE_PATTERN.source}`);
  return null;
}

function refuseVirtual(name: string, value: string | null, kind: string, faults: string[]): void {
  if (value !== null && VIRTUAL_PLATFORMS.has(value)) {
    faults.push(`${name}: "${value}" is a virtual ${kind}, which never carries resources`);
  }
}

function readSource(item: JsonObject, faults: string[]): void {
  const source = item.source;
  if (source === undefined || source === "collector" || source === "reconciliation") return;
  faults.push(
    typeof source === "string"
      ? "source: must be collector or reconciliation"
      : `source: must be a string, got ${kindOf(source)}`,
  );
}

/** What the event would be: also of a type that breaks a rule, so that its payload is judged all the same. */
function categoryOf({ event_type }: JsonObject): Category {
  return typeof event_type === "string" ? categorize(event_type) : "update";
}

function readPayload(
  item: JsonObject,
  category: Category,
  faults: string[],
): { state: string | null; size: JsonObject | null } {
  const nothing = { state: null, size: null };
  const payload = item.payload ?? null;
  if (payload === null) {
    if (category === "delete") return nothing;
    faults.push(item.payload === undefined ? "payload: is missing" : "payload: must be an object, got null");
    return nothing;
  }
  if (!isJsonObject(payload)) {
    faults.push(`payload: must be an object, got ${kindOf(payload)}`);
    return nothing;
  }
  const provider = payload.provider;
  if (provider !== undefined && !isJsonObject(provider)) {
    faults.push(`payload.provider: must be an object, got ${kindOf(provider)}`);
  }
  return { state: readState(payload, category, faults), size: readSize(payload, category, faults) };
}

function readState(payload: JsonObject, category: Category, faults: string[]): string | null {
  const state = payload.state ?? null;
  if (state === null) {
    if (category !== "delete") faults.push("payload.state: is missing");
    return null;
  }
  if (typeof state !== "string") {
    faults.push(`payload.state: must be a string, got ${kindOf(state)}`);
    return null;
  }
  return brokenLength("payload.state", state, STATE_MAX_BYTES, faults) ? null : state;
}

function readSize(payload: JsonObject, category: Category, faults: string[]): JsonObject | null {
  const size = payload.size ?? null;
  if (isJsonObject(size)) return size;
  if (size !== null) faults.push(`payload.size: must be an object, got ${kindOf(size)}`);
  else if (category === "create") faults.push("payload.size: is missing");
  return null;
}
