/** The 400 of a request that breaks the contract, with every fault that was found. */
import { type FieldError, Problem } from "../problem.ts";

/** Makes the problem to throw. `faults` has at least one entry. */
export function refusal(faults: readonly FieldError[]): Problem {
  const detail = faults.map(({ loc, msg }) => `${loc}: ${msg}`).join("; ");
  // A request can have thousands of faults; the detail is for people, the list for programs.
  return new Problem("validation", detail.length > 500 ? `${detail.slice(0, 500)}…` : detail, {
    errors: faults.slice(0, MAX_FAULTS),
  });
}

/** More faults than this are not told: an answer must not grow with what a hostile body holds. */
export const MAX_FAULTS = 100;
