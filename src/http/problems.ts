/** The one place where an error becomes an answer: RFC 9457, and never more than the caller may know. */
import { faultOf, sqlStateOf } from "../database/faults.ts";
import { PROBLEMS, Problem } from "../problem.ts";
import type { Logger } from "../telemetry/log.ts";

/** Seconds after which a caller that was told `unavailable` may try again. */
const RETRY_AFTER_S = "5";

/** Answers an error. What isn't a `Problem` is logged with its stack, and told of only by its kind. */
export function problemAnswer(error: unknown, log: Logger): Response {
  return render(asProblem(error, log));
}

function asProblem(error: unknown, log: Logger): Problem {
  if (error instanceof Problem) {
    if (error.status >= 500) log.error("request failed", { error });
    return error;
  }
  const fault = faultOf(error);
  if (fault === "unavailable" || fault === "timeout" || fault === "retry") {
    log.warn("the database did not serve a request", { fault, error });
    return new Problem("unavailable", detailOf(fault, error), { headers: { "retry-after": RETRY_AFTER_S } });
  }
  log.error("request failed", { error });
  return new Problem("internal");
}

function detailOf(fault: "unavailable" | "timeout" | "retry", error: unknown): string | undefined {
  if (isFull(error))
    return "the disk that holds the database is full: nothing is written until there is room";
  if (fault === "timeout") return "the database did not answer in time";
  if (fault === "retry") return "too many others were writing the same rows";
  return undefined;
}

/** 53100 is how the server says it. */
function isFull(error: unknown): boolean {
  return (
    sqlStateOf(error) === "53100" || (error instanceof Error && "code" in error && error.code === "ENOSPC")
  );
}

function render(problem: Problem): Response {
  const body = {
    type: `urn:tally:error:${problem.kind}`,
    title: PROBLEMS[problem.kind].title,
    status: problem.status,
    ...(problem.message === "" ? {} : { detail: problem.message }),
    ...(problem.errors.length === 0 ? {} : { errors: problem.errors }),
  };
  const headers = new Headers(problem.headers);
  headers.set("content-type", "application/problem+json");
  if (problem.kind === "unauthorized" && !headers.has("www-authenticate")) {
    headers.set("www-authenticate", "Bearer");
  }
  if (problem.kind === "unavailable" && !headers.has("retry-after"))
    headers.set("retry-after", RETRY_AFTER_S);
  return new Response(JSON.stringify(body), { status: problem.status, headers });
}
