/**
 * Path and query of a request, read from the raw URL: the router's own decoding is lenient (it takes `%ff`
 * and lets a repeated parameter's last value win), and a misread filter would answer with the wrong rows.
 */
import type { FieldError } from "../problem.ts";

/**
 * The path of a request's URL as it was sent, percent-encoding and all; null where the server could make no URL
 * of the request, which a malformed Host header does.
 */
export function rawPath(url: string): string | null {
  const scheme = url.indexOf("://");
  const start = scheme === -1 ? -1 : url.indexOf("/", scheme + 3);
  if (start === -1) return null;
  const end = url.indexOf("?", start);
  return end === -1 ? url.slice(start) : url.slice(start, end);
}

/** Decodes percent-encoding, strictly: `null` for a stray `%` and for what isn't UTF-8. */
export function percentDecoded(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * Reads a query into a map, decoded; each parameter may stand once and must have a value. What is wrong goes
 * into `faults`, at `query.<name>`, and isn't in the map.
 */
export function queryEntries(url: string, faults: FieldError[]): Map<string, string> {
  const entries = new Map<string, string>();
  const mark = url.indexOf("?");
  if (mark === -1) return entries;
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const pair of url.slice(mark + 1).split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = percentDecoded((equals === -1 ? pair : pair.slice(0, equals)).replaceAll("+", " "));
    if (name === null || name.includes("\0")) {
      faults.push({ loc: "query", msg: "a parameter's name is not percent-encoded UTF-8 text without NUL" });
      continue;
    }
    if (seen.has(name)) {
      if (!repeated.has(name)) faults.push({ loc: `query.${name}`, msg: "is given more than once" });
      repeated.add(name);
      continue;
    }
    seen.add(name);
    const value = percentDecoded(equals === -1 ? "" : pair.slice(equals + 1).replaceAll("+", " "));
    if (value === null) faults.push({ loc: `query.${name}`, msg: "is not percent-encoded UTF-8" });
    else if (value === "") faults.push({ loc: `query.${name}`, msg: "must not be empty" });
    else if (value.includes("\0")) faults.push({ loc: `query.${name}`, msg: "holds a NUL character" });
    else entries.set(name, value);
  }
  return entries;
}

/** What the envelope knows of a request before its handler runs. */
export interface RequestFacts {
  /** The path's parts for the pattern's parameters, as they were sent. */
  readonly parameters: Readonly<Record<string, string>>;
  /** To be called when the whole body is here. */
  readonly bodyArrived: () => void;
}

const facts = new WeakMap<Request, RequestFacts>();

/** Keeps a request's facts for the operation that will read it. */
export function keepFacts(request: Request, known: RequestFacts): void {
  facts.set(request, known);
}

/** Tells the envelope that nothing more is to come from the client. */
export function bodyArrived(request: Request): void {
  facts.get(request)?.bodyArrived();
}

/** The raw path segments of a request by parameter name; what is wrong with them goes into `faults`. */
export function pathEntries(request: Request, faults: FieldError[]): Map<string, string> {
  const entries = new Map<string, string>();
  for (const [name, raw] of Object.entries(facts.get(request)?.parameters ?? {})) {
    const value = percentDecoded(raw);
    if (value === null) faults.push({ loc: `path.${name}`, msg: "is not percent-encoded UTF-8" });
    else if (value.includes("\0")) faults.push({ loc: `path.${name}`, msg: "holds a NUL character" });
    else entries.set(name, value);
  }
  return entries;
}
