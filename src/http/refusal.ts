/** The problem of a request that breaks the contract, with the faults that were found. */
import { type FieldError, Problem, type ProblemExtras } from "../problem.ts";

/** Makes the problem to throw: a 400, or the 422 of what is well formed and yet can't be so. `faults` has an entry. */
export function refusal(
  faults: readonly FieldError[],
  extras: Pick<ProblemExtras, "status" | "cause"> = {},
): Problem {
  const detail = faults.map(({ loc, msg }) => `${loc}: ${msg}`).join("; ");
  // A request can have thousands of faults; the detail is for people, the list for programs.
  return new Problem("validation", detail.length > 500 ? `${detail.slice(0, 500)}…` : detail, {
    ...extras,
    errors: faults.slice(0, MAX_FAULTS),
  });
}

/** More faults than this are not told: an answer must not grow with what a hostile body holds. */
export const MAX_FAULTS = 100;
