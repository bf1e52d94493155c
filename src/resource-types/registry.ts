/**
 * Size schemas, compiled: what a registration accepts is exactly what ingestion enforces later. JSON Schema draft
 * 2020-12, except that `format` is enforced; numbers are compared as JavaScript numbers (so 12345678901234567890 and …891 are the same `const`),
 * `multipleOf` in exact decimals.
 */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { installFormats } from "./formats.ts";
import { beginCheck, installKeywords, TooMuchWork } from "./keywords.ts";
import { linearPattern, PatternRefused } from "./pattern.ts";
import { type EnforceableSchema, enforceable, SchemaRefused } from "./schema-document.ts";
import { violations } from "./violations.ts";

export { SchemaRefused } from "./schema-document.ts";

/** A compiled size schema. */
export interface SizeSchema {
  /**
   * Holds a size to the schema.
   * @returns one message a violation, none where it fits. A missing member reads `'vcpus' is a required property`.
   */
  check(size: unknown): string[];
}

const engine = Object.assign((source: string) => linearPattern(source), { code: "linearPattern" });
/** Holds documents to the draft's own schema. */
const metaschema = addFormats(new Ajv2020({ strict: false }), ["regex", "uri", "uri-reference"]);
const compiler = new Ajv2020({
  strict: false,
  // 1e400 is Infinity in JavaScript: still a number, and past every maximum.
  strictNumbers: false,
  allErrors: true,
  // The error then carries the keyword's value, of which the messages tell.
  verbose: true,
  // `constructor` is no member of {}.
  ownProperties: true,
  // A reference is a call: inlining could multiply the code.
  inlineRefs: false,
  meta: false,
  validateSchema: false,
  logger: false,
  code: { regExp: engine },
});
installFormats(compiler);
installKeywords(compiler);

function compile(text: string): SizeSchema {
  const document: unknown = parse(text);
  const schema = enforceable(document);
  if (metaschema.validateSchema(toSchema(document)) !== true) {
    const faults = (metaschema.errors ?? []).slice(0, 3);
    const told = faults.map(({ instancePath, message }) => `${instancePath.slice(1, 300)} ${message}`.trim());
    throw new SchemaRefused(`it is no schema of draft 2020-12: ${told.join("; ")}`);
  }
  const compiled = new CompiledSchema(validator(schema));
  // A schema that never comes to an end does so on the smallest size, too.
  compiled.probe();
  return compiled;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SchemaRefused("it is not JSON", { cause: error });
  }
}

/** Ajv's parameter type; `enforceable` has found the document to be an object. */
function toSchema(document: unknown): object {
  return typeof document === "object" && document !== null ? document : {};
}

function validator(schema: EnforceableSchema): ValidateFunction {
  try {
    return compiler.compile(schema);
  } catch (error) {
    if (error instanceof PatternRefused)
      throw new SchemaRefused(`pattern: ${error.message}`, { cause: error });
    const reason = error instanceof Error ? error.message.slice(0, 500) : String(error);
    throw new SchemaRefused(`it does not compile: ${reason}`, { cause: error });
  } finally {
    // Ajv keeps every schema that it has seen; here the texts are what is cached by.
    compiler.removeSchema(schema);
  }
}

class CompiledSchema implements SizeSchema {
  readonly #validate: ValidateFunction;

  constructor(validate: ValidateFunction) {
    this.#validate = validate;
  }

  check(size: unknown): string[] {
    try {
      return this.#run(size);
    } catch (error) {
      // A call stack that overflows is the same fault as too many steps.
      if (error instanceof TooMuchWork || error instanceof RangeError) {
        return ["takes too many steps to be held to the size schema"];
      }
      throw error;
    }
  }

  /** @throws SchemaRefused where not even an empty size can be checked. */
  probe(): void {
    try {
      this.#run({});
    } catch (error) {
      if (!(error instanceof TooMuchWork || error instanceof RangeError)) throw error;
      throw new SchemaRefused("a $ref leads back to itself without going deeper", { cause: error });
    }
  }

  #run(size: unknown): string[] {
    beginCheck();
    if (this.#validate(size)) return [];
    const found = violations(this.#validate.errors ?? []);
    // Errors hold on to the item.
    this.#validate.errors = null;
    return found;
  }
}

/** Compiled schemas by their text, the one used longest ago first. Refusals are kept, too. */
const cache = new Map<string, SizeSchema | SchemaRefused>();
/** A document is at most 64 KiB of text and compiles to a few times that. */
const CACHED = 500;

/**
 * The compiled form of a registered document. Compiling takes milliseconds, a text that is known nothing.
 * @param text JSON text of a JSON Schema (draft 2020-12).
 * @throws SchemaRefused where it is none, or can't be enforced whole; the message says why.
 */
export function compileSizeSchema(text: string): SizeSchema {
  const known = cache.get(text);
  const found = known ?? compiledOrRefused(text);
  cache.delete(text);
  cache.set(text, found);
  if (cache.size > CACHED) {
    const oldest = cache.keys().next();
    if (oldest.done !== true) cache.delete(oldest.value);
  }
  if (found instanceof SchemaRefused) throw found;
  return found;
}

function compiledOrRefused(text: string): SizeSchema | SchemaRefused {
  try {
    return compile(text);
  } catch (error) {
    if (error instanceof SchemaRefused) return error;
    throw error;
  }
}
