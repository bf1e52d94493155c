/**
 * What a run has seen of a cloud, held once and small: a cloud of a hundred thousand resources names few states,
 * projects and sizes, so each different text is kept a single time, and the platform's own description as text.
 */
import { byteLength, IDENTIFIER_MAX_BYTES } from "../event/bounds.ts";
import type { Instant } from "../event/instant.ts";
import type { ObservedResource } from "./adapter.ts";

/** One resource as it was seen. */
export interface Seen {
  readonly projectId: string;
  /** Null where only its end was reported. */
  readonly state: string | null;
  /** JSON text; null where it could not be learnt. */
  readonly size: string | null;
  /** JSON text of an object. */
  readonly provider: string;
  readonly inTransition: boolean;
  readonly createdAt: Instant | null;
  readonly changedAt: Instant | null;
  /** When it ended; null while it lives. */
  readonly deletedAt: Instant | null;
}

/** A resource that was seen, and what it was seen as. */
export interface SeenResource {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly seen: Seen;
}

/** What a listing gave, by resource. */
export class ObservedResources {
  readonly #byType = new Map<string, Map<string, Seen>>();
  readonly #texts = new Map<string, string>();

  /**
   * Takes one resource in. Listings overlap (an item that moves between pages, one that ends between the listing of
   * the living and that of the ended), so that one resource may come several times: its end counts most, then what
   * the platform changed last, then what came last.
   * @returns why it can't be a row of the record, or null
   */
  add(resource: ObservedResource): string | null {
    const { resourceType, resourceId } = resource;
    const fault = faultOfIdentifier(resourceType) ?? faultOfIdentifier(resourceId);
    if (fault !== null) return fault;
    if (resource.deletedAt === null && resource.state === null) return "it lives, and has no state";
    let ofType = this.#byType.get(resourceType);
    if (ofType === undefined) {
      ofType = new Map();
      this.#byType.set(resourceType, ofType);
    }
    const known = ofType.get(resourceId);
    if (known === undefined || overrides(resource, known)) ofType.set(resourceId, this.#compact(resource));
    return null;
  }

  /** Gives a resource and forgets it; null where it was not seen (or taken already). */
  take(resourceType: string, resourceId: string): Seen | null {
    const ofType = this.#byType.get(resourceType);
    const seen = ofType?.get(resourceId);
    if (ofType === undefined || seen === undefined) return null;
    ofType.delete(resourceId);
    return seen;
  }

  /** How many were not taken yet. */
  get size(): number {
    let size = 0;
    for (const ofType of this.#byType.values()) size += ofType.size;
    return size;
  }

  /** Gives what was not taken yet, in no order, and forgets it on the way. */
  *takeRest(): Generator<SeenResource> {
    for (const [resourceType, ofType] of this.#byType) {
      for (const [resourceId, seen] of ofType) {
        ofType.delete(resourceId);
        yield { resourceType, resourceId, seen };
      }
    }
  }

  #compact({ projectId, state, size, provider, inTransition, ...instants }: ObservedResource): Seen {
    return {
      projectId: this.#once(projectId),
      state: state === null ? null : this.#once(state),
      size: size === null ? null : this.#once(size),
      provider: JSON.stringify(provider),
      inTransition,
      createdAt: instants.createdAt,
      changedAt: instants.changedAt,
      deletedAt: instants.deletedAt,
    };
  }

  #once(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }
}

/** Whether the later report of one resource counts more than the earlier one. */
function overrides(later: ObservedResource, earlier: Seen): boolean {
  if ((later.deletedAt === null) !== (earlier.deletedAt === null)) return later.deletedAt !== null;
  if (later.changedAt === null || earlier.changedAt === null) return true;
  return later.changedAt >= earlier.changedAt;
}

/** Why no row can be known by this text, or null. */
function faultOfIdentifier(text: string): string | null {
  const bytes = byteLength(text);
  if (bytes < 1 || bytes > IDENTIFIER_MAX_BYTES)
    return `its identifier must be 1 to ${IDENTIFIER_MAX_BYTES} bytes, got ${bytes}`;
  if (text.includes("\0")) return "its identifier holds a NUL character";
  return text.isWellFormed() ? null : "its identifier holds half a surrogate pair";
}
