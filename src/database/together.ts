/** Statements that don't need each other's answers, sent without waiting for them: one round trip for all. */

/** Sends one statement, or several that follow on each other. */
export type Statement = () => Promise<unknown>;

/**
 * Runs the statements in their order on a transaction's one connection. All have ended when this returns or throws.
 * @throws the first one's error, in their order: those behind it only fail because the transaction has
 */
export async function together(statements: readonly Statement[]): Promise<void> {
  for (const end of await Promise.allSettled(statements.map((send) => send())))
    if (end.status === "rejected") throw end.reason;
}
