/** One resource's history, as far as the reader owns it. */
import { inScope, type Scope } from "../access/callers.ts";
import type { Database } from "../database/connection.ts";
import { snapshot } from "../database/snapshot.ts";
import { ITEM_MAX_BYTES } from "../event/bounds.ts";
import type { ResourceKey, StoredEvent } from "../event/event.ts";
import { Problem } from "../problem.ts";
import { countHistory, findResource, historyOf, payloadBytes, type ResourceRow } from "./queries.ts";

/** More stored events than this are not read in one answer. */
export const MAX_HISTORY = 10_000;
/** Nor is more text of their payloads: about what a page of the largest events has. */
const MAX_HISTORY_MIB = 256;
const MIB = 1024 * 1024;

/** A resource's row, and those of its events that the reader may see. */
export interface History {
  /** Folded from every event that the resource has, whoever reads it. */
  readonly resource: ResourceRow;
  /** In fold order. After a transfer, the new owner's are only its own. */
  readonly events: readonly StoredEvent[];
}

/**
 * Reads a resource and its history as of one moment.
 * @throws Problem not_found where the project that owns the resource now is out of scope, or where there is no
 *   such resource: the two can't be told apart. history_too_long past `MAX_HISTORY` stored events, or past
 *   `MAX_HISTORY_MIB` of their payloads.
 */
export async function readHistory(db: Database, scope: Scope, key: ResourceKey): Promise<History> {
  return await snapshot(db, async (tx) => {
    const resource = await findResource(tx, key);
    if (resource === null || !inScope(scope, resource)) throw new Problem("not_found");
    const events = await countHistory(tx, key, MAX_HISTORY + 1);
    if (events > MAX_HISTORY) {
      throw new Problem("history_too_long", `the resource has more than ${MAX_HISTORY} stored events`);
    }
    // To measure is to read it all: not where the events, each of them bounded, are too few to be too much.
    const mayBeTooMuch = events * ITEM_MAX_BYTES > MAX_HISTORY_MIB * MIB;
    if (mayBeTooMuch && (await payloadBytes(tx, key)) > MAX_HISTORY_MIB * MIB) {
      throw new Problem(
        "history_too_long",
        `the payloads of the resource's stored events are larger than ${MAX_HISTORY_MIB} MiB`,
      );
    }
    const own = scope?.filter((pair) => pair.cloud === key.cloud).map((pair) => pair.projectId) ?? null;
    return { resource, events: await historyOf(tx, key, own) };
  });
}
