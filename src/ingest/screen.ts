/**
 * Screening: what the pipeline decides of one item before anything is written. Pure; the first stage that
 * refuses decides the reason, and within a stage all broken rules are told.
 *
 *   NUL → schema → scope → size names → size schema
 */

import { byteLength, ECHO_MAX_BYTES, IDENTIFIER_MAX_BYTES } from "../event/bounds.ts";
import { hasNul, measure, membersOf, type Span } from "../event/json-text.ts";
import type { ValidEvent } from "../event/validate.ts";
import { isJsonObject, validateEvent } from "../event/validate.ts";

/** The (platform, cloud) that a collector's credential was issued for. */
export interface Scope {
  readonly platform: string;
  readonly cloud: string;
}

/** The kind of check that refused an item: a metric's label and the reason's prefix. */
export type ReasonKind = "schema" | "scope" | "size_schema";

/** An item that the first three stages let through. */
export interface Candidate {
  /** Position in the batch, from 0. */
  readonly index: number;
  readonly event: ValidEvent;
  /** The item's JSON text as it came. */
  readonly text: string;
  /** The payload as the database shall read it; null for a delete without one. */
  readonly payload: string | null;
  /** The size's text, digit for digit; null where the event reports none. */
  readonly sizeText: string | null;
}

/** An item that was refused. */
export interface Refusal {
  readonly index: number;
  /** The item's JSON text as it came. */
  readonly text: string;
  readonly kind: ReasonKind;
  /** `<kind>` or `<kind>: <why>`. */
  readonly reason: string;
  /** The event id that the item carried, cut off where it is absurdly long; "" where it carried none. */
  readonly eventId: string;
  /** The cloud that the item named; null where it named none that an event could name. */
  readonly cloud: string | null;
  /** What the item named beside the credential's own pair; for a scope violation only. */
  readonly claimed: Scope | null;
}

export function isRefusal<T extends object>(outcome: T | Refusal): outcome is Refusal {
  return "reason" in outcome;
}

/** The first three stages on one item: NUL, schema, scope. `scope` is null where nothing narrows the caller. */
export function screenItem(
  text: string,
  item: unknown,
  index: number,
  scope: Scope | null,
): Candidate | Refusal {
  const refuse = (kind: ReasonKind, reason: string, claimed: Scope | null = null): Refusal => {
    const eventId = isJsonObject(item) && typeof item.event_id === "string" ? cutEventId(item.event_id) : "";
    return { index, text, kind, reason, eventId, cloud: namedCloud(item), claimed };
  };
  if (hasNul(text))
    return refuse("schema", "schema: the item carries a NUL character, which cannot be stored");
  const measured = measure(text);
  const event = validateEvent(item, text, measured);
  if (!("eventId" in event)) return refuse("schema", `schema: ${event.join("; ")}`);
  if (scope !== null && (event.platform !== scope.platform || event.cloud !== scope.cloud)) {
    return refuse("scope", "scope", { platform: event.platform, cloud: event.cloud });
  }
  return {
    index,
    event,
    text,
    payload: sliceOf(text, measured.payload),
    sizeText: event.size === null ? null : sliceOf(text, measured.size),
  };
}

/** The whole characters within the bound: a refusal is answered with it, and must not echo a whole payload. */
function cutEventId(eventId: string): string {
  if (byteLength(eventId) <= ECHO_MAX_BYTES) return eventId;
  let bytes = 0;
  let kept = "";
  for (const character of eventId) {
    bytes += byteLength(character);
    if (bytes > ECHO_MAX_BYTES) break;
    kept += character;
  }
  return kept;
}

/** What the item says its cloud is, as far as it can be stored and asked for. */
function namedCloud(item: unknown): string | null {
  if (!isJsonObject(item) || typeof item.cloud !== "string" || !item.cloud.isWellFormed()) return null;
  const cloud = item.cloud.replaceAll("\u0000", "");
  return cloud === "" || byteLength(cloud) > IDENTIFIER_MAX_BYTES ? null : cloud;
}

/** A value's text; null where it is absent or JSON's null. */
function sliceOf(text: string, span: Span | null): string | null {
  if (span === null) return null;
  const value = text.slice(span.start, span.end);
  return value === "null" ? null : value;
}

/** One row of `size_names`: under `member`, the string `value` is called `name`. */
export interface SizeName {
  readonly member: string;
  readonly value: string;
  readonly name: string;
}

/** A compiled size schema. */
export interface SizeSchema {
  /** Every violation, `'vcpus' is a required property` among them; empty for a size that conforms. */
  check(size: unknown): readonly string[];
}

/** What the database knew of sizes when the batch came; `null` from `schema` means that none is registered. */
export interface SizeRules {
  names(cloud: string, resourceType: string): readonly SizeName[];
  schema(platform: string, resourceType: string): SizeSchema | null;
}

/** The last two stages' verdict; `unvalidated` marks a size that no schema was registered for. */
export type SizeVerdict = { readonly candidate: Candidate; readonly unvalidated: boolean } | Refusal;

/** The last two stages on one item that reports a size: names, then the schema. */
export function screenSize(candidate: Candidate, rules: SizeRules, requireSchema: boolean): SizeVerdict {
  const { event, index, text } = candidate;
  if (event.size === null) return { candidate, unvalidated: false };
  const refuse = (why: string): Refusal => {
    return {
      index,
      text,
      kind: "size_schema",
      reason: `size_schema: ${why}`,
      eventId: event.eventId,
      cloud: event.cloud,
      claimed: null,
    };
  };
  const named = applySizeNames(candidate, rules.names(event.cloud, event.resourceType));
  const schema = rules.schema(event.platform, event.resourceType);
  if (schema === null) {
    if (!requireSchema) return { candidate: named, unvalidated: true };
    return refuse(`no size schema is registered for (${event.platform}, ${event.resourceType})`);
  }
  const violations = schema.check(named.event.size);
  return violations.length === 0 ? { candidate: named, unvalidated: false } : refuse(violations.join("; "));
}

/**
 * Replaces ids by the names that the cloud's listings give them. What was replaced is kept in
 * `payload.provider.size_as_reported`, which the pipeline owns: one that came with the item is overwritten when,
 * and only when, something was replaced.
 */
function applySizeNames(candidate: Candidate, names: readonly SizeName[]): Candidate {
  const { event, payload, sizeText } = candidate;
  if (names.length === 0 || event.size === null || payload === null || sizeText === null) return candidate;
  const replaced: Record<string, string> = Object.create(null);
  const size: Record<string, unknown> = Object.assign(Object.create(null), event.size);
  for (const { member, value, name } of names) {
    if (Object.hasOwn(event.size, member) && event.size[member] === value) {
      replaced[member] = value;
      size[member] = name;
    }
  }
  const members = Object.keys(replaced);
  if (members.length === 0) return candidate;
  const newSize = withMembers(
    sizeText,
    members.map((member) => [member, JSON.stringify(size[member])]),
  );
  const provider = membersOf(payload, 0).members.get("provider");
  const providerText = provider === undefined ? "{}" : payload.slice(provider.start, provider.end);
  const newProvider = withMembers(providerText, [["size_as_reported", JSON.stringify(replaced)]]);
  return {
    ...candidate,
    event: { ...event, size: { ...size } },
    payload: withMembers(payload, [
      ["size", newSize],
      ["provider", newProvider],
    ]),
    sizeText: newSize,
  };
}

/** The object's text with the members set, everything else digit for digit as it was. */
function withMembers(object: string, set: readonly (readonly [string, string])[]): string {
  const kept = [...membersOf(object, 0).members].filter(([name]) => !set.some(([other]) => other === name));
  const all = [...kept.map(([name, span]) => [name, object.slice(span.start, span.end)] as const), ...set];
  return `{${all.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}
