/**
 * What every contestant writes: batches of 1000 events shaped like the recorded OpenStack sample, one half creates
 * of new resources, the other half later events of resources that are known. The same numbers always give the same
 * events, so that what two contestants leave behind can be compared row by row.
 */
import { readFileSync } from "node:fs";
import { categorize } from "../../src/event/event.ts";
import { memberText } from "../../src/event/json-text.ts";

/** The (platform, cloud) that all events name. */
export const PLATFORM = "openstack";
export const CLOUD = "bench-1";
/** Events in a batch: what one request takes at most. */
export const BATCH_ITEMS = 1000;
/** Known resources that a batch touches. */
export const KNOWN_PER_BATCH = BATCH_ITEMS / 2;

/** A resource as its first event left it. */
export interface Resource {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly projectId: string;
  readonly createdAt: string;
  readonly state: string;
  /** JSON text. */
  readonly size: string;
}

/** One event, with what its resource's row is afterwards. */
export interface Item {
  readonly eventId: string;
  readonly timestamp: string;
  readonly eventType: string;
  /** JSON text. */
  readonly payload: string;
  readonly resource: Resource;
  readonly after: { readonly state: string; readonly size: string; readonly deletedAt: string | null };
}

/** An event of the sample, without what makes it that event. */
interface Shape {
  readonly eventType: string;
  readonly resourceType: string;
  readonly payload: string;
  readonly state: string | null;
  readonly size: string | null;
}

function readShapes(): Shape[] {
  const lines = readFileSync(new URL("../../src/demo/openstack-events.ndjson", import.meta.url), "utf8");
  return lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const payload = memberText(line, "payload") ?? "{}";
      return {
        eventType: stringOf(line, "event_type") ?? "",
        resourceType: stringOf(line, "resource_type") ?? "",
        payload,
        state: stringOf(payload, "state"),
        size: memberText(payload, "size"),
      };
    });
}

function stringOf(text: string, member: string): string | null {
  const value = memberText(text, member);
  return value === null ? null : String(JSON.parse(value));
}

const shapes = readShapes();
const creates = shapes.filter(({ eventType }) => categorize(eventType) === "create");
const laterByType = Map.groupBy(
  shapes.filter(({ eventType }) => categorize(eventType) !== "create"),
  ({ resourceType }) => resourceType,
);

/** The `n`th of a cycle that is never empty. */
function cycle<T>(list: readonly T[], n: number): T {
  const found = list[n % list.length];
  if (found === undefined) throw new Error("the sample lacks a kind of event that the benchmark needs");
  return found;
}

/** A stream of 32-bit numbers (mulberry32); ids are random, as a cloud's are, and yet the same in every run. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

function hex32(next: () => number): string {
  let text = "";
  for (let i = 0; i < 4; i++) text += next().toString(16).padStart(8, "0");
  return text;
}

function uuid(next: () => number): string {
  const h = hex32(next);
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-4${h.slice(13, 16)}-a${h.slice(17, 20)}-${h.slice(20)}`;
}

const PROJECTS = Array.from({ length: 200 }, (_, n) => hex32(numbers(7_000_000 + n)));
const KNOWN_FROM = Date.UTC(2026, 9, 1) * 1000;
const BATCHES_FROM = Date.UTC(2026, 10, 1) * 1000;
/** Microseconds from one event to the next: no round number, so that timestamps have all their digits. */
const STEP = 20_347;

function instant(micros: number): string {
  const fraction = String(micros % 1_000_000).padStart(6, "0");
  return `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, 19)}.${fraction}Z`;
}

function createItem(next: () => number, n: number, timestamp: string): Item {
  const { eventType, resourceType, payload, state, size } = cycle(creates, n);
  const resource = {
    resourceType,
    resourceId: uuid(next),
    projectId: cycle(PROJECTS, next()),
    createdAt: timestamp,
    state: state ?? "",
    size: size ?? "{}",
  };
  const after = { state: resource.state, size: resource.size, deletedAt: null };
  return { eventId: uuid(next), timestamp, eventType, payload, resource, after };
}

function laterItem(next: () => number, n: number, timestamp: string, resource: Resource): Item {
  const shape = cycle(laterByType.get(resource.resourceType) ?? [], n);
  const deleted = categorize(shape.eventType) === "delete";
  const after = {
    state: deleted ? "deleted" : (shape.state ?? resource.state),
    size: shape.size ?? resource.size,
    deletedAt: deleted ? timestamp : null,
  };
  return {
    eventId: uuid(next),
    timestamp,
    eventType: shape.eventType,
    payload: shape.payload,
    resource,
    after,
  };
}

/** The creates of the resources that are known before a measurement begins. */
export function knownItems(count: number): Item[] {
  const next = numbers(1);
  return Array.from({ length: count }, (_, n) => createItem(next, n, instant(KNOWN_FROM + n * STEP)));
}

/** Batch `n`: one create for each known resource given, and one later event of it, taking turns. */
export function batchItems(n: number, known: readonly Resource[]): Item[] {
  const next = numbers(1_000 + n);
  const from = BATCHES_FROM + n * BATCH_ITEMS * STEP;
  return known.flatMap((resource, i) => {
    const position = n * KNOWN_PER_BATCH + i;
    return [
      createItem(next, position, instant(from + 2 * i * STEP)),
      laterItem(next, position, instant(from + (2 * i + 1) * STEP), resource),
    ];
  });
}

/** The request body of a batch, spaced as the sample is. */
export function requestBody(items: readonly Item[]): string {
  const texts = items.map(
    ({ eventId, timestamp, eventType, payload, resource }) =>
      `{"event_id": "${eventId}", "timestamp": "${timestamp}", "event_type": "${eventType}", ` +
      `"platform": "${PLATFORM}", "cloud": "${CLOUD}", "resource_type": "${resource.resourceType}", ` +
      `"resource_id": "${resource.resourceId}", "project_id": "${resource.projectId}", ` +
      `"source": "collector", "payload": ${payload}}`,
  );
  return `[${texts.join(", ")}]`;
}

/** What the floor's first statement reads: a JSON array, one element an event. */
export function eventRows(items: readonly Item[]): string {
  const texts = items.map(
    ({ eventId, timestamp, eventType, payload, resource }, i) =>
      `{"i":${i},"at":"${timestamp}","id":"${eventId}","t":"${eventType}","rt":"${resource.resourceType}",` +
      `"r":"${resource.resourceId}","pr":"${resource.projectId}","pl":${payload}}`,
  );
  return `[${texts.join(",")}]`;
}

/** What the floor's second statement reads: a JSON array, one element a resource. */
export function resourceRows(items: readonly Item[]): string {
  const texts = items.map(
    ({ eventId, timestamp, eventType, resource, after }, i) =>
      `{"i":${i},"rt":"${resource.resourceType}","r":"${resource.resourceId}","pr":"${resource.projectId}",` +
      `"c":"${resource.createdAt}","d":${after.deletedAt === null ? "null" : `"${after.deletedAt}"`},` +
      `"l":"${timestamp}","li":"${eventId}","lt":"${eventType}","s":${JSON.stringify(after.state)},` +
      `"z":${after.size}}`,
  );
  return `[${texts.join(",")}]`;
}
