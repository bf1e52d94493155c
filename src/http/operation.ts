/**
 * One object a route: it documents the operation and reads its input, from the same schemas, so that the
 * document can't promise what the route doesn't check. The router's own validation isn't used: by default it
 * strips unknown members, and it lets repeated parameters pass; here a request that names anything the
 * operation doesn't is refused.
 */
import { type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import type { FieldError, ProblemKind } from "../problem.ts";
import { MAX_BODY_BYTES, readText } from "./body.ts";
import { readMembers, readValue, refuseUnstorable } from "./members.ts";
import type { Scheme } from "./needed.ts";
import { type Answer, operationDetail, type ProblemAnswer } from "./operation-detail.ts";
import { Refused } from "./parameters.ts";
import { refusal } from "./refusal.ts";
import { pathEntries, queryEntries } from "./request-input.ts";

/** What a request's body may be. */
export interface BodySpec<B extends TSchema, R extends boolean, S extends boolean> {
  readonly schema: B;
  readonly description?: string;
  readonly example?: unknown;
  /** False: a request without a body is taken, and its value is undefined. */
  readonly required: R;
  /**
   * True: the body is held to `schema`; an unknown member is refused, and so is text that can't be stored (NUL,
   * half a surrogate pair) anywhere.
   * False: it is JSON, no more, and its value is `unknown`; the route checks it (a batch refuses item by item).
   */
  readonly strict: S;
  /** After decompression; `MAX_BODY_BYTES` unless told. */
  readonly maxBytes?: number;
}

/** Everything there is to say about an operation. */
export interface OperationSpec<
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
  R extends boolean,
  S extends boolean,
> {
  /** The operationId. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** The credential's scheme, null for none. */
  readonly security: Scheme | null;
  /** Path parameters, all required, by the names of the route's pattern. */
  readonly params?: P;
  readonly query?: Q;
  readonly body?: BodySpec<B, R, S>;
  /** What it answers when all is well, by status. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** What else it answers; validation, unauthorized, internal, unavailable and payload_too_large come by themselves. */
  readonly problems?: readonly (ProblemKind | ProblemAnswer)[];
}

type BodyValue<B extends TSchema, R extends boolean, S extends boolean> = S extends false
  ? unknown
  : R extends true
    ? Static<B>
    : Static<B> | undefined;

const NONE = Type.Object({});

/**
 * Makes an operation. Each reader checks the request's path, query and (readBody) body, so that all faults of a
 * request are told together; a route that takes nothing calls `readQuery` all the same, which then refuses any
 * parameter. A body where none is taken is refused as well: filters in it would be taken no notice of.
 */
export function operation<
  P extends TObject = typeof NONE,
  Q extends TObject = typeof NONE,
  B extends TSchema = TSchema,
  const R extends boolean = true,
  const S extends boolean = true,
>(spec: OperationSpec<P, Q, B, R, S>) {
  const detail = operationDetail(spec);

  const read = (request: Request): { params: Static<P>; query: Static<Q>; faults: FieldError[] } => {
    const faults: FieldError[] = [];
    const params = typed(spec.params, pathEntries(request, faults), "path", faults);
    const query = typed(spec.query, queryEntries(request.url, faults), "query", faults);
    if (spec.body === undefined && announcedBytes(request) > MEMBERLESS_BYTES) {
      faults.push({
        loc: "body",
        msg: "is not taken by this operation: its parameters stand in the path and the query",
      });
    }
    return { params, query, faults };
  };
  const readOrRefuse = (request: Request) => {
    const input = read(request);
    if (input.faults.length > 0) throw refusal(input.faults);
    return input;
  };

  return {
    spec,
    /** The route's hook: `app.get(path, handler, listEvents.hook)`. */
    hook: { detail, parse: "none" as const },

    /** The query, typed. @throws Problem validation with every fault of path and query. */
    readQuery: (request: Request): Static<Q> => readOrRefuse(request).query,

    /**
     * The path's parameters, percent-decoded from the raw URL; the router's own (lenient) ones aren't used.
     * @throws Problem validation with every fault of path and query.
     */
    readParams: (request: Request): Static<P> => readOrRefuse(request).params,

    /**
     * The body: its text as it came (decompressed; "" for none) and its value.
     * @throws Problem validation with every fault of path, query and body; payload_too_large past the bound.
     */
    readBody: async (request: Request): Promise<{ text: string; value: BodyValue<B, R, S> }> => {
      if (spec.body === undefined) throw new Error(`operation ${spec.id} takes no body`);
      const { faults } = read(request);
      const body = await readJson(request, spec.body, faults);
      if (faults.length > 0) throw refusal(faults);
      // What was read is what the schema says: readJson has put every difference into `faults`.
      return { text: body.text, value: body.value as BodyValue<B, R, S> };
    },
  };
}

/** What some clients send where there is nothing to send, `{}`, can't hold a member that would be taken no notice of. */
const MEMBERLESS_BYTES = 2;

function announcedBytes(request: Request): number {
  return Number(request.headers.get("content-length") ?? 0);
}

const NO_MEMBERS: TObject = NONE;

/** Path or query by their schema. The one place where what was checked gets its static type. */
function typed<T extends TObject>(
  schema: T | undefined,
  entries: ReadonlyMap<string, string>,
  place: "path" | "query",
  faults: FieldError[],
): Static<T> {
  return readMembers(schema ?? NO_MEMBERS, entries, place, place, faults) as Static<T>;
}

async function readJson(
  request: Request,
  spec: BodySpec<TSchema, boolean, boolean>,
  faults: FieldError[],
): Promise<{ text: string; value: unknown }> {
  const text = await readText(request, spec.required, spec.maxBytes ?? MAX_BODY_BYTES);
  if (text instanceof Refused) {
    faults.push({ loc: "body", msg: text.msg });
    return { text: "", value: undefined };
  }
  if (text === "") return { text, value: undefined };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message quotes the body.
    faults.push({ loc: "body", msg: "is not JSON" });
    return { text, value: undefined };
  }
  if (!spec.strict) return { text, value };
  const read = readValue(spec.schema, value, "body", "body", faults);
  // NUL and half a surrogate pair can stand in JSON only escaped: nearly no body is searched for them.
  if (/\\u(?:0000|[dD])/.test(text)) refuseUnstorable(value, "body", faults);
  return { text, value: read };
}
