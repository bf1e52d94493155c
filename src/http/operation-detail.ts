/** What an operation says of itself in the OpenAPI document. */
import { OptionalKind, type TObject, type TSchema, Type } from "@sinclair/typebox";
import type { DocumentDecoration } from "elysia";
import { PROBLEMS, type ProblemKind } from "../problem.ts";

/** The three schemes of bearer tokens; a token of one is no use at the routes of another. */
export type Security = "ingestToken" | "apiToken" | "internalToken";

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
  readonly security: Security | null;
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: {
    readonly schema: TSchema;
    readonly required: boolean;
    readonly description?: string;
    readonly example?: unknown;
  };
  readonly answers: Readonly<Record<number, Answer>>;
  readonly problems?: readonly (ProblemKind | { readonly kind: ProblemKind; readonly status: 422 })[];
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

function example(kind: ProblemKind, status: number): object {
  const problem = { type: `urn:tally:error:${kind}`, title: PROBLEMS[kind].title, status };
  if (kind !== "validation") return problem;
  const fault = { loc: "query.colour", msg: "is no parameter of this operation" };
  return { ...problem, detail: `${fault.loc}: ${fault.msg}`, errors: [fault] };
}

function problemAnswers(spec: Documented) {
  const byStatus = new Map<number, Set<ProblemKind>>();
  const add = (kind: ProblemKind, status: number = PROBLEMS[kind].status) => {
    byStatus.set(status, (byStatus.get(status) ?? new Set()).add(kind));
  };
  add("validation");
  add("internal");
  if (spec.security !== null) {
    add("unauthorized");
    add("unavailable");
  }
  if (spec.body !== undefined) add("payload_too_large");
  for (const problem of spec.problems ?? []) {
    if (typeof problem === "string") add(problem);
    else add(problem.kind, problem.status);
  }
  const responses: Responses = {};
  for (const [status, kinds] of byStatus) {
    if (spec.answers[status] !== undefined) continue;
    responses[status] = {
      description: [...kinds]
        .map((kind) => `${PROBLEMS[kind].title} (\`urn:tally:error:${kind}\`)`)
        .join("; or "),
      headers: {
        ...PROBLEM_HEADERS[status],
        "X-Request-ID": { $ref: "#/components/headers/X-Request-ID" },
      },
      content: {
        "application/problem+json": {
          schema: ProblemSchema,
          examples: Object.fromEntries([...kinds].map((kind) => [kind, { value: example(kind, status) }])),
        },
      },
    };
  }
  return responses;
}
