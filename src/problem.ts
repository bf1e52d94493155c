/**
 * Every error that Tally can answer, in one place: RFC 9457 problem types with their titles and statuses.
 * Features throw a `Problem`; only `http/` renders one.
 */

/** One broken rule of a request: `loc` is the dotted place (`body.name`, `query.limit`), `msg` what is wrong. */
export interface FieldError {
  readonly loc: string;
  readonly msg: string;
}

/** The catalogue: kind → status and title. The `type` URI is `urn:tally:error:<kind>`. */
export const PROBLEMS = {
  validation: { status: 400, title: "The request breaks the contract" },
  unauthorized: { status: 401, title: "No usable credential" },
  forbidden: { status: 403, title: "Not allowed" },
  not_found: { status: 404, title: "No such path or thing" },
  method_not_allowed: { status: 405, title: "The path exists, the method does not" },
  conflict: { status: 409, title: "Collides with what is stored" },
  payload_too_large: { status: 413, title: "More than the route takes at once" },
  history_too_long: { status: 422, title: "More history than an unpaged read folds" },
  result_too_large: { status: 422, title: "More groups than an unpaged answer carries" },
  relation_cycle: { status: 422, title: "The relation would close an attribution cycle" },
  not_implemented: { status: 501, title: "Nothing serves this parameter" },
  internal: { status: 500, title: "A fault of Tally's own" },
  unavailable: { status: 503, title: "The database can't be reached" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemKind = keyof typeof PROBLEMS;

/** What a problem may carry beyond its kind. */
export interface ProblemExtras {
  /** One entry a broken rule. */
  readonly errors?: readonly FieldError[];
  /** Answer with this status instead of the catalogue's: a validation fault that a route answers 422. */
  readonly status?: 422;
  /** Headers that the answer needs: `Allow`, `Retry-After`, `WWW-Authenticate`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What led here; for the log, never for the answer. */
  readonly cause?: unknown;
}

/** An error that the caller is told of. `detail` is for people and never holds a secret or an SQL text. */
export class Problem extends Error {
  readonly kind: ProblemKind;
  readonly status: number;
  readonly errors: readonly FieldError[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(kind: ProblemKind, detail?: string, extras: ProblemExtras = {}) {
    super(detail ?? "", extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = "Problem";
    this.kind = kind;
    this.status = extras.status ?? PROBLEMS[kind].status;
    this.errors = extras.errors ?? [];
    this.headers = extras.headers ?? {};
  }
}
