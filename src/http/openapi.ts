/**
 * The OpenAPI document. @elysiajs/swagger collects the operations from the routes; what it writes is 3.0.3 with
 * schemas in place, so it is corrected here before anyone sees it: 3.1.0, whose schemas are JSON Schema as
 * TypeBox writes it (a nullable is `["string","null"]`), and components under their names, referenced.
 */
import { swagger } from "@elysiajs/swagger";
import type { TSchema } from "@sinclair/typebox";
import { type AnyElysia, Elysia } from "elysia";
import { version } from "../../package.json";

type Json = Record<string, unknown>;

/** Where the collecting instance answers, in process; nothing outside ever reaches it. */
const COLLECTED_AT = "/collected";

const DESCRIPTION = `Tally keeps the lifecycle events of cloud resources and folds them into billable intervals.

Every request that names a member or a parameter its operation doesn't name is refused, and so is a body where
none is taken: a misspelt or misplaced filter is never answered with unfiltered rows. Instants are RFC 3339 with an offset, microseconds survive, answers are in
UTC; in a query write an offset's \`+\` as \`%2B\` (a bare one, which means a space there, is read as \`+\` all the
same). Numbers inside payloads, sizes and metadata come back digit for digit. Bodies may be compressed with gzip
or zstd and unpack to at most 32 MiB. Every error is a \`Problem\`. Every answer carries \`X-Request-ID\`.`;

const TAGS = [
  { name: "Ingest", description: "Collectors hand events in." },
  { name: "Events", description: "What was reported, as it is stored." },
  { name: "Dead letters", description: "What was refused, and another try of it." },
  { name: "Resources", description: "What the events fold into." },
  { name: "Projects", description: "Who owns resources, and how owners are related." },
  { name: "Resource types", description: "The schema that each type's sizes are held to." },
  { name: "Statistics", description: "How many there are, were, and happened." },
  { name: "Reconciliation", description: "Comparisons of the clouds with the record." },
  { name: "Audit", description: "Who did what." },
  { name: "Internal", description: "Tally's own parts." },
  { name: "Operation", description: "Health, metrics, and this document." },
];

const SCHEMES = {
  ingestToken:
    "A collector's token, `tly_i_…`; `tally credential create` makes one for a platform and a cloud.",
  apiToken:
    "A reader's or an operator's token, `tly_a_…`; `tally token create` makes one. Role admin may what read_all may, and that what project may.",
  internalToken: "The shared secret of Tally's own parts, TALLY_REPORTING_INTERNAL_TOKEN.",
};

/**
 * Makes the document of an app.
 * @param routes the instance that holds every route.
 * @param models schemas with an `$id` that others refer to by name.
 * @throws Error where two different schemas claim one component's name.
 */
export async function openApiDocument(routes: AnyElysia, models: readonly TSchema[]): Promise<Json> {
  const collector = new Elysia({ name: "openapi" })
    .use(swagger({ path: `${COLLECTED_AT}/page`, specPath: COLLECTED_AT, excludeStaticFile: false }))
    .use(routes);
  const answer = await collector.handle(new Request(`http://localhost${COLLECTED_AT}`));
  const collected: unknown = await answer.json();
  const paths = isObject(collected) && isObject(collected.paths) ? collected.paths : {};

  const components = new Components();
  for (const model of models) components.correct(JSON.parse(JSON.stringify(model)));
  const corrected = components.correct(paths);
  return {
    openapi: "3.1.0",
    info: {
      title: "Tally Reporting API",
      version,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: TAGS.filter(({ name }) => usedTags(corrected).has(name)),
    paths: corrected,
    components: {
      schemas: components.sorted(),
      headers: {
        "X-Request-ID": {
          description: "The request's id: the caller's own where it sent one, else a fresh UUID.",
          schema: { type: "string" },
        },
      },
      securitySchemes: Object.fromEntries(
        Object.entries(SCHEMES).map(([name, description]) => [
          name,
          { type: "http", scheme: "bearer", description },
        ]),
      ),
    },
  };
}

/** Takes schemas with a name out of a document, and leaves references. */
class Components {
  readonly #byName = new Map<string, unknown>();

  correct(node: unknown): unknown {
    if (Array.isArray(node)) return node.map((item) => this.correct(item));
    if (!isObject(node)) return node;
    // Examples are data: an `$id` in there names nothing.
    const entries = Object.entries(node).map(([key, value]) => [
      key,
      key === "example" || key === "examples" || key === "default" ? value : this.correct(value),
    ]);
    const { $id: name, ...schema }: Json = Object.fromEntries(entries);
    if (typeof name === "string") return this.#name(name, schema);
    if (typeof schema.$ref === "string" && !schema.$ref.startsWith("#")) {
      return { ...schema, $ref: reference(schema.$ref) };
    }
    return simplified(schema);
  }

  sorted(): Json {
    return Object.fromEntries([...this.#byName].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #name(name: string, schema: Json): Json {
    const known = this.#byName.get(name);
    if (known !== undefined && !Bun.deepEquals(known, schema)) {
      throw new Error(`two different schemas are named ${name}`);
    }
    this.#byName.set(name, schema);
    return { $ref: reference(name) };
  }
}

function reference(name: string): string {
  return `#/components/schemas/${name}`;
}

/** `anyOf` of one typed schema and null → a type list; `anyOf` of constants → an enum. */
function simplified(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const parts: Json[] = anyOf.filter(isObject);
  if (parts.length > 0 && parts.every((part) => typeof part.const === "string")) {
    return { type: "string", enum: parts.map((part) => part.const), ...rest };
  }
  const [value, ...others] = parts.filter((part) => part.type !== "null");
  if (parts.length === 2 && others.length === 0 && typeof value?.type === "string") {
    return { ...value, type: [value.type, "null"], ...rest };
  }
  return schema;
}

function usedTags(paths: unknown): Set<unknown> {
  const operations = isObject(paths) ? Object.values(paths).filter(isObject).flatMap(Object.values) : [];
  return new Set(operations.flatMap((operation) => (isObject(operation) ? operation.tags : [])));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
