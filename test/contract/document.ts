/** The served document as contract tests read it. */
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { TestServer } from "../support/server.ts";

/** A JSON Schema, as far as the crawler looks into it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly minProperties?: number;
}

/** A path or query parameter. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly schema: Schema;
}

/** One operation. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, Content & { readonly schema: Schema }>>;
  };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Content>> }>>;
}

/** The document, and what it says of an answer. */
export interface Contract {
  readonly operations: readonly Operation[];
  /** The schema that a reference means. */
  resolve(schema: Schema): Schema;
  /** What is wrong with an answer of that operation; null for nothing. */
  fault(operation: Operation, answer: Response): Promise<string | null>;
  /** What breaks the schema of a body in the document, by the names that lead to it; null for nothing. */
  breach(place: readonly string[], value: unknown): string | null;
}

/** A body of one media type. */
export interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

/**
 * The document, with no room in an object for members that it doesn't list: readers have to bear unknown ones, but this
 * server answers none. Free objects (payloads, sizes, metadata) say that they are.
 */
function closed(schema: object): Record<string, unknown> {
  const inside = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, closedPart(part)]));
  const lists = [inside.type].flat().includes("object") && typeof inside.properties === "object";
  return lists ? { additionalProperties: false, ...inside } : inside;
}

function closedPart(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closedPart);
  return typeof part === "object" && part !== null ? closed(part) : part;
}

/** Reads a server's document. */
export async function readContract(server: TestServer): Promise<Contract> {
  const document: {
    paths: Record<string, Record<string, Omit<Operation, "method" | "path">>>;
    components: { schemas: Record<string, Schema> };
  } = JSON.parse(await (await server.request("/openapi.json")).text());
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  addFormats(ajv);
  ajv.addSchema(closed(document), "openapi");
  const compiled = new Map<string, ValidateFunction>();
  const breach = (place: readonly string[], value: unknown): string | null => {
    const steps = [...place, "schema"].map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`);
    const pointer = encodeURI(steps.join(""));
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    compiled.set(pointer, validate);
    return validate(value) ? null : ajv.errorsText(validate.errors);
  };

  const fault = async (operation: Operation, answer: Response): Promise<string | null> => {
    const text = await answer.text();
    const told = `${answer.status} ${text.slice(0, 500)}`;
    if (answer.status >= 500) return `a fault of ours: ${told}`;
    const documented = operation.responses[String(answer.status)];
    if (documented === undefined) return `an undocumented status: ${told}`;
    if (documented.content === undefined) return text === "" ? null : `a body that isn't documented: ${told}`;
    const type = answer.headers.get("content-type")?.split(";")[0] ?? "none";
    if (!(type in documented.content)) return `${type} isn't documented: ${told}`;
    const place = [
      "paths",
      operation.path,
      operation.method.toLowerCase(),
      "responses",
      String(answer.status),
      "content",
      type,
    ];
    const broken = breach(place, type.endsWith("json") ? JSON.parse(text) : text);
    return broken === null ? null : `the answer breaks its schema: ${broken} in ${told}`;
  };

  return {
    operations: Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        method: method.toUpperCase(),
        path,
      })),
    ),
    resolve(schema) {
      const name = schema.$ref?.replace("#/components/schemas/", "");
      return name === undefined ? schema : (document.components.schemas[name] ?? schema);
    },
    fault,
    breach,
  };
}
