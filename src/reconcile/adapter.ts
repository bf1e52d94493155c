/**
 * What a platform's adapter tells a reconciliation run. An adapter only reads the cloud, and says what it could not
 * read: a listing that failed is never an empty one.
 */
import type { Instant } from "../event/instant.ts";

/** One resource as the platform reports it. */
export interface ObservedResource {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly projectId: string;
  /** In the words that collectors use; null where the platform only reports the resource's end. */
  readonly state: string | null;
  /** The size as JSON text of an object; null where it could not be learnt: then no size is compared. */
  readonly size: string | null;
  /** What else is worth keeping of the platform's own description: `payload.provider`. */
  readonly provider: Readonly<Record<string, unknown>>;
  /** The platform is at work on it: whatever differs may differ again in a moment. */
  readonly inTransition: boolean;
  readonly createdAt: Instant | null;
  readonly changedAt: Instant | null;
  /** When the platform says that it ended; null while it lives. */
  readonly deletedAt: Instant | null;
}

/** What comes out of the listings, in any order. */
export type Observation =
  | { readonly kind: "resource"; readonly resource: ObservedResource }
  /** The type was not read to its end: what was seen of it counts, what was not seen says nothing. */
  | { readonly kind: "incomplete"; readonly resourceType: string; readonly reason: string };

/** What the platform calls the string `value` of a size's `member`. */
export interface ObservedSizeName {
  readonly resourceType: string;
  readonly member: string;
  readonly value: string;
  readonly name: string;
}

/** A cloud that let the adapter in and shows it all projects. */
export interface CloudSession {
  /**
   * Lists every type that the adapter enumerates; a type that fails is told as `incomplete` and fails no other.
   * @param deletedSince from when on ended resources are asked for; null asks for none
   * @throws only what concerns no type, and when the signal aborts
   */
  observe(deletedSince: Instant | null): AsyncIterable<Observation>;
  /** @throws where the names could not all be read */
  sizeNames(): Promise<readonly ObservedSizeName[]>;
}

/** What a run lends its adapter. */
export interface AdapterContext {
  /** Aborts when the run's budget is spent or its caller is gone. */
  readonly signal: AbortSignal;
}

/** One configured cloud of one platform. */
export interface Adapter {
  readonly platform: string;
  /** The types that `observe` reads to their end, or tells as incomplete. */
  readonly resourceTypes: readonly string[];
  /**
   * Logs in and proves that the account sees all projects, before anything is listed.
   * @throws RunFailure where that can't be done
   */
  open(context: AdapterContext): Promise<CloudSession>;
}

/** A cloud that is reconciled. */
export interface ConfiguredCloud {
  /** What its events carry. */
  readonly cloud: string;
  readonly platform: string;
  /** Between the starts of two runs; null: what the settings say; 0: only on request. */
  readonly intervalSeconds: number | null;
  readonly adapter: Adapter;
}

/** Ends a run before anything is observed: bad settings, a refused login, an account that sees too little. */
export class RunFailure extends Error {
  override readonly name = "RunFailure";
}
