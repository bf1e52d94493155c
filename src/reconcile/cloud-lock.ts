/**
 * One run a cloud, across processes. The lock is an advisory one of a transaction that stays open while the run
 * lasts, on a connection of its own: it ends with the connection, so that a process that dies frees it, and a
 * pooler that hands out connections by the transaction keeps it.
 */
import type { Database, Transaction } from "../database/connection.ts";
import { openBeside } from "../database/pool.ts";

/** What holds the lock. */
export interface Held {
  /** @throws where the connection is gone, and the lock with it: then another run may have begun. */
  check(): Promise<void>;
}

/** The lock's outcome: `work` was done, or another run holds the cloud. */
export type Locked<T> = { readonly held: false; readonly value: T } | { readonly held: true };

/**
 * Holds the cloud's lock while `work` runs.
 * @param silenceMs how long the server may take for an answer before it is taken for gone
 * @throws what `work` throws, and what the database does; a server that answers nothing is an unreachable one
 */
export async function withCloudLock<T>(
  db: Database,
  cloud: string,
  silenceMs: number,
  work: (held: Held) => Promise<T>,
): Promise<Locked<T>> {
  const session = openBeside(db);
  const begun: { work: Promise<T> | null } = { work: null };
  // Where a network swallows everything, only closing the connection ends the wait for an answer.
  let silence: ReturnType<typeof setTimeout> | undefined;
  const expectAnswer = () => {
    silence = setTimeout(() => void session.close({ timeout: 0 }), silenceMs);
  };
  const answered = () => clearTimeout(silence);
  try {
    expectAnswer();
    const locked = await session.begin(async (tx) => {
      await keepWhileIdle(tx);
      const got = await tryLock(tx, cloud);
      if (!got) return false;
      answered();
      const check = async () => {
        expectAnswer();
        try {
          await tx`SELECT`;
        } finally {
          answered();
        }
      };
      try {
        begun.work = work({ check });
        await begun.work;
      } finally {
        expectAnswer();
      }
      return true;
    });
    if (!locked) return { held: true };
  } catch (error) {
    if (begun.work === null) throw error;
    // The transaction wrote nothing: where only its end failed, all that there was to do is done.
  } finally {
    answered();
    await session.close({ timeout: 0 });
  }
  if (begun.work === null) throw new Error("the lock was had, and nothing done under it");
  return { held: false, value: await begun.work };
}

/** The lock's transaction does nothing for as long as the run lasts, and notices a machine that went away. */
async function keepWhileIdle(tx: Transaction): Promise<void> {
  await tx`
    SELECT set_config('idle_in_transaction_session_timeout', '0', true),
           set_config('tcp_keepalives_idle', '15', true),
           set_config('tcp_keepalives_interval', '5', true),
           set_config('tcp_keepalives_count', '3', true)`;
}

async function tryLock(tx: Transaction, cloud: string): Promise<boolean> {
  const [row]: { locked: boolean }[] = await tx`
    SELECT pg_try_advisory_xact_lock(${lockKey(cloud)}::text::bigint) AS locked`;
  return row?.locked === true;
}

/** 64 bits of a hash: two clouds never meet in one key. */
function lockKey(cloud: string): string {
  const hash = new Bun.CryptoHasher("sha256").update(`tally reconciliation ${cloud}`).digest();
  return String(hash.readBigInt64BE());
}
