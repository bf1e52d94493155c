/** A run's time: its own budget, and its caller's patience. */
import { RunFailure } from "./adapter.ts";

/** Aborts with the caller's signal, and when the budget is spent. */
export function budgetSignal(
  caller: AbortSignal,
  seconds: number,
): { readonly signal: AbortSignal; end(): void } {
  const own = new AbortController();
  const cancel = () => {
    own.abort(
      caller.reason instanceof RunFailure
        ? caller.reason
        : new RunFailure("the run was cancelled by its caller"),
    );
  };
  if (caller.aborted) cancel();
  caller.addEventListener("abort", cancel, { once: true });
  const timer = setTimeout(() => {
    own.abort(new RunFailure(`the run's budget of ${seconds} s is spent`));
  }, seconds * 1_000);
  return {
    signal: own.signal,
    end() {
      clearTimeout(timer);
      caller.removeEventListener("abort", cancel);
    },
  };
}
