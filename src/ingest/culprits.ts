/** Which items the database refuses, where it refuses a batch for a reason that lies in its data. */
import type { Database, Transaction } from "../database/connection.ts";
import { faultOf, sqlStateOf } from "../database/faults.ts";
import { transaction } from "../database/transaction.ts";
import { refusedEvents } from "./queries.ts";
import type { Candidate } from "./screen.ts";
import type { Screened, Sender, Store } from "./store.ts";

/** Thrown to roll a trial back. */
class TrialOver extends Error {}

/**
 * The items at fault, by position, with what the database says of each. Nothing is stored.
 *
 * The events are tried one by one inside the database, in one statement, however many are refused. Should the fault be
 * none of theirs, but of what follows from them, the batch is halved until each item that is refused stands alone.
 */
export async function findCulprits(
  db: Database,
  sender: Sender,
  candidates: readonly Candidate[],
  store: Store,
): Promise<ReadonlyMap<number, string>> {
  const refused = await refusedByThemselves(db, sender, candidates);
  return refused.size > 0 ? refused : await byHalves(db, sender, candidates, store);
}

async function refusedByThemselves(
  db: Database,
  sender: Sender,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<number, string>> {
  let refused: ReadonlyMap<number, string> = new Map();
  try {
    await tried(db, async (tx) => {
      refused = await refusedEvents(tx, sender.source, candidates);
    });
  } catch (error) {
    // A role that may make no temporary function finds them the slower way.
    if (sqlStateOf(error) !== "42501") throw error;
  }
  return refused;
}

async function byHalves(
  db: Database,
  sender: Sender,
  candidates: readonly Candidate[],
  store: Store,
): Promise<Map<number, string>> {
  const why = await refusalOf(db, sender, { candidates, refusals: [] }, store);
  const [first] = candidates;
  if (why === null || first === undefined) return new Map();
  if (candidates.length === 1) return new Map([[first.index, why]]);
  const middle = candidates.length >> 1;
  const left = await byHalves(db, sender, candidates.slice(0, middle), store);
  const right = await byHalves(db, sender, candidates.slice(middle), store);
  return new Map([...left, ...right]);
}

/** Why the database refuses these items; null where it takes them. Nothing stays. */
async function refusalOf(
  db: Database,
  sender: Sender,
  batch: Screened,
  store: Store,
): Promise<string | null> {
  try {
    await tried(db, async (tx) => {
      await store(tx, sender, batch);
    });
  } catch (error) {
    if (faultOf(error) === "data" && error instanceof Error) return error.message;
    throw error;
  }
  return null;
}

/** Runs the work in a transaction that is rolled back. */
async function tried(db: Database, work: (tx: Transaction) => Promise<void>): Promise<void> {
  try {
    await transaction(db, async (tx) => {
      await work(tx);
      throw new TrialOver();
    });
  } catch (error) {
    if (!(error instanceof TrialOver)) throw error;
  }
}
