/**
 * A size schema on its way to the validator. The validator (Ajv) enforces more than draft 2020-12 says in some
 * places and gets it wrong in others, so it never sees the document itself: what it gets is a copy that holds
 * the draft's keywords only, with every reference written in the one form that it resolves reliably. What can't
 * be enforced whole is refused here, with the reason; an unknown keyword is an annotation, and simply left out.
 */
import { FORMATS } from "./formats.ts";
import { STEP_KEYWORD } from "./keywords.ts";

/** A document that can't be registered; the message says why. */
export class SchemaRefused extends Error {
  override readonly name = "SchemaRefused";
}

type JsonObject = { readonly [key: string]: unknown };
export type EnforceableSchema = { [key: string]: unknown };

const DIALECT = "https://json-schema.org/draft/2020-12/schema";
/** A schema's own nesting. Every level is a call in the validator; sizes nest far less. */
const MAX_DEPTH = 64;
/** Schemas in one document: compiling is work on the thread that serves everybody. */
const MAX_SCHEMAS = 1_000;

const ONE_SCHEMA = new Set(
  "items contains additionalProperties propertyNames if then else not unevaluatedProperties contentSchema".split(
    " ",
  ),
);
const LIST_OF_SCHEMAS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const MAP_OF_SCHEMAS = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "$defs",
  "definitions",
]);
const ASSERTIONS = new Set(
  "type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired format".split(
    " ",
  ),
);

/** What would be enforced wrongly, or by halves, or not at all although its author means it. */
const REFUSED = new Map<string, string>([
  ["$dynamicRef", "dynamic references are not supported: use $ref"],
  ["$dynamicAnchor", "dynamic references are not supported: use $anchor"],
  ["$recursiveRef", "it is a keyword of draft 2019-09: use $ref"],
  ["$recursiveAnchor", "it is a keyword of draft 2019-09"],
  ["$vocabulary", "own vocabularies are not supported"],
  ["unevaluatedItems", "it is not enforced reliably: use prefixItems and items"],
  ["$async", "asynchronous schemas are not supported"],
  ["dependencies", "it is a keyword of draft 7: use dependentRequired or dependentSchemas"],
  ["additionalItems", "it is a keyword of draft 2019-09: use prefixItems and items"],
  ["nullable", 'it is no keyword of JSON Schema: use a list of types, like ["string", "null"]'],
  ["discriminator", "it is no keyword of JSON Schema: use oneOf"],
]);

/** A place in the document: the keys on the way to it. */
type Path = readonly string[];

interface Reference {
  readonly at: Path;
  readonly target: string;
  /** The copy, whose `$ref` is still to be written. */
  readonly copy: EnforceableSchema;
}

/** Walks one document. */
class Reader {
  readonly #base: string | null;
  /** Every schema's copy by its pointer; a boolean one is null. */
  readonly #schemas = new Map<string, EnforceableSchema | null>();
  readonly #anchors = new Map<string, string>();
  readonly #references: Reference[] = [];
  #unevaluatedAt: Path | null = null;
  /** What the validator's `unevaluatedProperties` doesn't see, anywhere in the document. */
  #unseen: string | null = null;

  constructor(document: JsonObject) {
    this.#base = typeof document.$id === "string" ? document.$id.replace(/#$/, "") : null;
  }

  read(document: JsonObject): EnforceableSchema {
    const copy = this.#object(document, []);
    if (this.#unevaluatedAt !== null && this.#unseen !== null) {
      throw refused(this.#unevaluatedAt, `together with ${this.#unseen} it is not enforced reliably`);
    }
    for (const { at, target, copy: from } of this.#references) this.#resolve(at, target, from);
    return copy;
  }

  #schema(value: unknown, at: Path): unknown {
    if (typeof value === "boolean") {
      this.#schemas.set(pointer(at), null);
      return value;
    }
    if (!isObject(value)) throw refused(at, "must be a schema: an object or a boolean");
    return this.#object(value, at);
  }

  #object(schema: JsonObject, at: Path): EnforceableSchema {
    if (at.length > MAX_DEPTH * 2) throw refused([], "it nests too deep");
    if (this.#schemas.size >= MAX_SCHEMAS) throw refused([], `it holds more than ${MAX_SCHEMAS} schemas`);
    const copy: EnforceableSchema = {};
    this.#schemas.set(pointer(at), copy);
    for (const [keyword, value] of Object.entries(schema)) {
      const here = [...at, keyword];
      const reason = REFUSED.get(keyword);
      if (reason !== undefined) throw refused(here, reason);
      if (keyword === "contains") this.#unseen = "contains";
      if (keyword === "unevaluatedProperties") this.#unevaluatedAt = here;
      if (keyword === "if" && !("then" in schema && "else" in schema)) {
        this.#unseen = "an if that lacks then or else";
      }
      if (keyword === "format" && !FORMATS.has(value)) {
        throw refused(here, `is not one of the formats that are enforced: ${[...FORMATS].join(", ")}`);
      }
      if (ASSERTIONS.has(keyword)) copy[keyword] = value;
      else if (ONE_SCHEMA.has(keyword)) copy[keyword] = this.#schema(value, here);
      else if (LIST_OF_SCHEMAS.has(keyword)) copy[keyword] = this.#list(value, here);
      else if (MAP_OF_SCHEMAS.has(keyword)) copy[keyword] = this.#map(value, here);
      else if (keyword === "$ref") this.#references.push({ at: here, target: String(value), copy });
      else this.#identity(keyword, value, at);
    }
    return copy;
  }

  #list(value: unknown, at: Path): unknown[] {
    if (!Array.isArray(value)) throw refused(at, "must be a list of schemas");
    return value.map((schema, index) => this.#schema(schema, [...at, String(index)]));
  }

  #map(value: unknown, at: Path): EnforceableSchema {
    if (!isObject(value)) throw refused(at, "must be an object of schemas");
    const copy: EnforceableSchema = {};
    for (const [name, schema] of Object.entries(value)) copy[name] = this.#schema(schema, [...at, name]);
    return copy;
  }

  /** What names a schema. Anything else is an annotation. */
  #identity(keyword: string, value: unknown, at: Path): void {
    const here = [...at, keyword];
    if (keyword === "$schema" && (at.length > 0 || (value !== DIALECT && value !== `${DIALECT}#`))) {
      throw refused(here, `must be ${DIALECT}, at the top of the document`);
    }
    // Within it, relative references would mean something else, which the validator is known to get wrong.
    if (keyword === "$id" && at.length > 0) throw refused(here, "only the document itself may have one");
    if (keyword === "$anchor" && typeof value === "string") {
      if (this.#anchors.has(value)) throw refused(here, "another schema has the same anchor");
      this.#anchors.set(value, pointer(at));
    }
  }

  /** Writes a reference as a pointer into the copy. Nothing is ever fetched. */
  #resolve(at: Path, target: string, from: EnforceableSchema): void {
    const fragment = this.#fragment(at, target);
    const place = fragment === "" || fragment.startsWith("/") ? fragment : this.#anchors.get(fragment);
    const found = place === undefined ? undefined : this.#schemas.get(place);
    if (place === undefined || found === undefined) {
      throw refused(
        at,
        `refers to ${JSON.stringify(target.slice(0, 200))}, where the document has no schema`,
      );
    }
    if (found !== null) found[STEP_KEYWORD] = true;
    from.$ref = `#${place.split("/").map(encodeURIComponent).join("/")}`;
  }

  #fragment(at: Path, target: string): string {
    const hash = target.indexOf("#");
    const document = hash === -1 ? target : target.slice(0, hash);
    if (document !== "" && !this.#isThisDocument(document)) {
      throw refused(at, `refers to ${JSON.stringify(target.slice(0, 200))} outside the document`);
    }
    try {
      return hash === -1 ? "" : decodeURIComponent(target.slice(hash + 1));
    } catch (error) {
      throw refused(at, "its fragment is not percent-encoded UTF-8", error);
    }
  }

  #isThisDocument(uri: string): boolean {
    if (this.#base === null) return false;
    if (uri === this.#base) return true;
    const base = URL.parse(this.#base);
    return base !== null && URL.parse(uri, base.href)?.href === base.href;
  }
}

/**
 * Makes the copy that is enforced.
 * @param document what `JSON.parse` made of the registered text.
 * @throws SchemaRefused
 */
export function enforceable(document: unknown): EnforceableSchema {
  if (!isObject(document)) throw refused([], "must be an object");
  checkValues(document);
  return new Reader(document).read(document);
}

/** What no keyword may hold, wherever it stands. */
function checkValues(document: JsonObject): void {
  const rest: { value: unknown; at: Path }[] = [{ value: document, at: [] }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { value, at } = next;
    if (at.length > MAX_DEPTH * 2) throw refused([], "it nests too deep");
    if (typeof value === "number" && !Number.isFinite(value)) throw refused(at, "is a number out of range");
    // The reasons of refusals quote names, and are stored.
    if (typeof value === "string" && !value.isWellFormed()) throw refused(at, "holds half a surrogate pair");
    // JavaScript gives this name a meaning of its own; the validator skips it.
    if (value === "__proto__") throw refused(at, 'may not name "__proto__"');
    if (typeof value !== "object" || value === null) continue;
    for (const [key, member] of Object.entries(value)) {
      if (!key.isWellFormed()) throw refused(at, "holds half a surrogate pair");
      if (key === "__proto__") throw refused(at, 'may not name "__proto__"');
      rest.push({ value: member, at: [...at, key] });
    }
  }
}

function refused(at: Path, reason: string, cause?: unknown): SchemaRefused {
  const place = at.length === 0 ? "" : `${at.join(".").slice(0, 300)}: `;
  return new SchemaRefused(place + reason, { cause });
}

/** The JSON pointer of a place, not percent-encoded. */
function pointer(at: Path): string {
  return at.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
