/** Seeded histories for property tests: everything that makes folding hard, in every order of arrival. */

import type { Instant } from "../../src/event/instant.ts";
import { formatInstant } from "../../src/event/instant.ts";
import type { FoldEvent } from "../../src/timeline/fold.ts";

/** A small, fast, seedable generator (mulberry32). Gives floats in [0, 1). */
export function randomFrom(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The seed of this run: TEST_SEED, or a fresh one. Print it where a test fails. */
export function seedOfRun(): number {
  return Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
}

export function pick<T>(random: () => number, from: readonly T[]): T {
  const value = from[Math.floor(random() * from.length)];
  if (value === undefined) throw new Error("nothing to pick from");
  return value;
}

export function shuffle<T>(random: () => number, list: readonly T[]): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const a = out[i];
    const b = out[j];
    if (a === undefined || b === undefined) throw new Error("out of range");
    out[i] = b;
    out[j] = a;
  }
  return out;
}

/** One generated event: what is sent, and what the fold is told once it has arrived. */
export interface GeneratedEvent {
  readonly resourceId: string;
  readonly eventId: string;
  readonly timestamp: Instant;
  readonly eventType: string;
  readonly projectId: string;
  readonly state: string | null;
  readonly size: string | null;
}

const TYPES = [
  "i.create",
  "i.create",
  "i.update",
  "i.power_off",
  "i.resize",
  "i.transfer.accept",
  "i.delete",
  "i.delete.end",
];
const STATES = ["active", "shutoff", "paused"];
// Two texts of one value among them: no change between these.
const SIZES = [
  '{"vcpus":2,"ram_gb":4}',
  '{"ram_gb":4.0,"vcpus":2}',
  '{"vcpus":4,"ram_gb":8}',
  '{"vcpus":12345678901234567890}',
];
const PROJECTS = ["p1", "p2"];
const T0 = 1_772_323_200_000_000n;

/** A history of 1 to 9 events on few instants, so that equal timestamps, stragglers and resurrections are common. */
export function generateHistory(random: () => number, resourceId: string): GeneratedEvent[] {
  const length = 1 + Math.floor(random() * 9);
  return Array.from({ length }, (_, n) => {
    const eventType = pick(random, TYPES);
    const isDelete = eventType.includes("delete");
    const isCreate = eventType.includes("create");
    return {
      resourceId,
      eventId: `${resourceId}-${pick(random, ["a", "b", "é", "\uffff", "\u{10000}"])}${n}`,
      timestamp: (T0 + BigInt(Math.floor(random() * 5)) * 60_000_000n) as Instant,
      eventType,
      projectId: pick(random, PROJECTS),
      state: isDelete && random() < 0.7 ? null : pick(random, STATES),
      size: isCreate || random() < 0.3 ? pick(random, SIZES) : null,
    };
  });
}

/** The event as the collector of (platform, cloud) sends it. */
export function eventText(
  event: GeneratedEvent,
  cloud: string,
  platform = "openstack",
  resourceType = "thing",
): string {
  const payload =
    event.state === null && event.size === null
      ? "null"
      : `{${[
          ...(event.state === null ? [] : [`"state":${JSON.stringify(event.state)}`]),
          ...(event.size === null ? [] : [`"size":${event.size}`]),
        ].join(",")}}`;
  return (
    `{"event_id":${JSON.stringify(event.eventId)},"timestamp":"${formatInstant(event.timestamp)}"` +
    `,"event_type":"${event.eventType}","platform":"${platform}","cloud":"${cloud}"` +
    `,"resource_type":"${resourceType}"` +
    `,"resource_id":${JSON.stringify(event.resourceId)},"project_id":"${event.projectId}","payload":${payload}}`
  );
}

/** The event as the fold sees it once it was received. */
export function foldEvent(event: GeneratedEvent, receivedAt: Instant, platform = "openstack"): FoldEvent {
  return {
    timestamp: event.timestamp,
    receivedAt,
    eventId: event.eventId,
    eventType: event.eventType,
    platform,
    projectId: event.projectId,
    state: event.state,
    size: event.size,
  };
}
