/**
 * YAML as plain texts, lists and maps. Numbers, booleans and dates stay the texts that they are written as: a password
 * 0123 keeps its zero, and a name `no` is a name.
 */
import { isScalar, parseDocument, visit } from "yaml";

/** What a YAML document holds. Null where nothing, `null` or `~` stands. */
export type YamlValue = string | null | readonly YamlValue[] | YamlMap;
/** A mapping; its members in the file's order. */
export type YamlMap = { readonly [name: string]: YamlValue };

/** Not YAML, or more than one document. */
export class YamlError extends Error {
  override readonly name = "YamlError";
}

/**
 * Reads one document, with anchors, aliases and merge keys as YAML 1.1 has them, which is what OpenStack's own tools read.
 * @throws {YamlError} that names the line, and never quotes it: it may hold a password
 */
export function readYaml(text: string): YamlValue {
  const document = parseDocument(text, { version: "1.1", prettyErrors: false, logLevel: "silent" });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const line = text.slice(0, fault.pos[0]).split("\n").length;
    throw new YamlError(`line ${line} is not YAML (${fault.code.toLowerCase().replaceAll("_", " ")})`);
  }
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== "string" && node.value !== null && isScalar(node)) {
        node.value = node.source ?? String(node.value);
      }
    },
  });
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 1_000 });
  } catch {
    throw new YamlError("its aliases can't be resolved");
  }
  return plain(value);
}

function plain(value: unknown): YamlValue {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object") {
    // Null prototype: a key `__proto__` is a key like any other.
    const map: Record<string, YamlValue> = Object.create(null);
    for (const [name, member] of Object.entries(value)) map[name] = plain(member);
    return map;
  }
  return String(value);
}

/** Whether a value is a mapping. */
export function isYamlMap(value: YamlValue | undefined): value is YamlMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `over` laid over `under`: mappings member by member, anything else replaces. */
export function merged(under: YamlValue, over: YamlValue): YamlValue {
  if (!isYamlMap(under) || !isYamlMap(over)) return over;
  const map: Record<string, YamlValue> = Object.create(null);
  for (const [name, member] of Object.entries(under)) map[name] = member;
  for (const [name, member] of Object.entries(over)) {
    const known = map[name];
    map[name] = known === undefined ? member : merged(known, member);
  }
  return map;
}
