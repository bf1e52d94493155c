/** What an operation says of itself in the OpenAPI document. */
import { OptionalKind, type TObject, type TSchema, Type } from "@sinclair/typebox";
import type { DocumentDecoration } from "elysia";
import { type FieldError, PROBLEMS, type ProblemKind } from "../problem.ts";
import { MAX_BODY_BYTES, tooLargeDetail } from "./body.ts";
import { credentialNeeded, type Scheme } from "./needed.ts";

/** One good answer. */
export interface Answer {
  /** What it holds; left out where there is no body. A schema with an `$id` becomes a component of that name. */
  readonly schema?: TSchema;
  readonly description: string;
  readonly example?: unknown;
  /** application/json unless told. */
  readonly contentType?: string;
  /** Headers worth knowing, name → description. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A problem that an operation answers, and what the document shows of it. */
export interface ProblemAnswer {
  readonly kind: ProblemKind;
  /** Where it is not the catalogue's. */
  readonly status?: 422;
  /** What the operation says of it; left out where `errors` say it, or nothing does. */
  readonly detail?: string;
  /** Faults that a request to this very operation can have. */
  readonly errors?: readonly FieldError[];
}

/** RFC 9457, as every error answers. */
export const ProblemSchema: TSchema = Type.Object(
  {
    type: Type.String({ description: "What kind of problem this is: `urn:tally:error:<kind>`." }),
    title: Type.String({ description: "The kind in words; the same for every problem of the type." }),
    status: Type.Integer({ description: "The answer's status, once more." }),
    detail: Type.Optional(Type.String({ description: "What went wrong this time." })),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          loc: Type.String({ description: "The place, dotted: `body.name`, `query.limit`, `path.id`." }),
          msg: Type.String({ description: "What is wrong with it." }),
        }),
        { description: "One entry a fault, where the request breaks the contract." },
      ),
    ),
  },
  {
    $id: "Problem",
    description: "What every error is answered with (RFC 9457), as `application/problem+json`.",
  },
);

/** What the document needs of an operation. */
interface Documented {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly security: Scheme | null;
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: {
    readonly schema: TSchema;
    readonly required: boolean;
    readonly description?: string;
    readonly example?: unknown;
    readonly maxBytes?: number;
  };
  readonly answers: Readonly<Record<number, Answer>>;
  readonly problems?: readonly (ProblemKind | ProblemAnswer)[];
}

type Responses = NonNullable<DocumentDecoration["responses"]>;

/** The `detail` of a route: an OpenAPI operation, except that components are still in place, with their `$id`. */
export function operationDetail(spec: Documented): DocumentDecoration {
  const { body } = spec;
  return {
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.description === undefined ? {} : { description: spec.description }),
    security: spec.security === null ? [] : [{ [spec.security]: [] }],
    parameters: [...parameters(spec.params, "path"), ...parameters(spec.query, "query")],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.required,
            ...(body.description === undefined ? {} : { description: body.description }),
            content: {
              "application/json": {
                schema: body.schema,
                ...(body.example === undefined ? {} : { example: body.example }),
              },
            },
          },
        }),
    responses: { ...goodAnswers(spec.answers), ...problemAnswers(spec) },
  };
}

function parameters(schema: TObject | undefined, place: "path" | "query") {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { description, ...rest } = property;
    const required = !(OptionalKind in property) && !("default" in property);
    return {
      name,
      in: place,
      required,
      ...(description === undefined ? {} : { description }),
      // A list is one comma-separated value, not a repeated parameter.
      ...(property.type === "array" ? { style: "form", explode: false } : {}),
      schema: rest,
    };
  });
}

function goodAnswers(answers: Readonly<Record<number, Answer>>) {
  const responses: Responses = {};
  for (const [status, answer] of Object.entries(answers)) {
    const { schema, description, example, contentType = "application/json", headers = {} } = answer;
    responses[status] = {
      description,
      headers: {
        ...Object.fromEntries(
          Object.entries(headers).map(([name, text]) => [
            name,
            { description: text, schema: { type: "string" } },
          ]),
        ),
        "X-Request-ID": { $ref: "#/components/headers/X-Request-ID" },
      },
      ...(schema === undefined
        ? {}
        : { content: { [contentType]: { schema, ...(example === undefined ? {} : { example }) } } }),
    };
  }
  return responses;
}

const PROBLEM_HEADERS: Readonly<Record<number, Record<string, { description: string; schema: object }>>> = {
  401: { "WWW-Authenticate": { description: "Always `Bearer`.", schema: { type: "string" } } },
  503: { "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } } },
};

/** Refused by every operation. */
const UNKNOWN_PARAMETER = { loc: "query.colour", msg: "is no parameter of this operation" };

function exampleOf({ kind, detail, errors }: ProblemAnswer, status: number): object {
  const said = detail ?? errors?.map(({ loc, msg }) => `${loc}: ${msg}`).join("; ");
  return {
    type: `urn:tally:error:${kind}`,
    title: PROBLEMS[kind].title,
    status,
    ...(said === undefined ? {} : { detail: said }),
    ...(errors === undefined ? {} : { errors }),
  };
}

/** What an operation answers by its nature, and then its own: of one kind and status, the last counts. */
function problemsOf({ security, body, problems = [] }: Documented): ProblemAnswer[] {
  const all: ProblemAnswer[] = [{ kind: "validation", errors: [UNKNOWN_PARAMETER] }, { kind: "internal" }];
  if (security !== null) {
    all.push({ kind: "unauthorized", detail: credentialNeeded(security) }, { kind: "unavailable" });
  }
  if (body !== undefined) {
    all.push({ kind: "payload_too_large", detail: tooLargeDetail(body.maxBytes ?? MAX_BODY_BYTES) });
  }
  return [...all, ...problems.map((problem) => (typeof problem === "string" ? { kind: problem } : problem))];
}

function problemAnswers(spec: Documented) {
  const byStatus = new Map<number, Map<ProblemKind, object>>();
  for (const problem of problemsOf(spec)) {
    const status = problem.status ?? PROBLEMS[problem.kind].status;
    const kinds = byStatus.get(status) ?? new Map();
    byStatus.set(status, kinds.set(problem.kind, exampleOf(problem, status)));
  }
  const responses: Responses = {};
  for (const [status, kinds] of byStatus) {
    if (spec.answers[status] !== undefined) continue;
    responses[status] = {
      description: [...kinds.keys()]
        .map((kind) => `${PROBLEMS[kind].title} (\`urn:tally:error:${kind}\`)`)
        .join("; or "),
      headers: {
        ...PROBLEM_HEADERS[status],
        "X-Request-ID": { $ref: "#/components/headers/X-Request-ID" },
      },
      content: {
        "application/problem+json": {
          schema: ProblemSchema,
          examples: Object.fromEntries([...kinds].map(([kind, value]) => [kind, { value }])),
        },
      },
    };
  }
  return responses;
}
