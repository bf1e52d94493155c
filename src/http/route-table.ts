/** Which pattern a path belongs to, and which methods the pattern has: for 404, 405, `Allow` and the metrics. */

/** One pattern of the app, `/api/v1/resource-types/:platform/:resource_type`. */
export interface RoutePattern {
  readonly pattern: string;
  /** In capitals, HEAD and OPTIONS included. */
  readonly methods: ReadonlySet<string>;
  /** `GET, HEAD, OPTIONS`. */
  readonly allow: string;
}

/** A pattern and the path's raw (still percent-encoded) parts for its parameters. */
export interface RouteMatch {
  readonly route: RoutePattern;
  readonly parameters: Readonly<Record<string, string>>;
}

interface Dynamic {
  readonly route: RoutePattern;
  readonly segments: readonly string[];
}

const NO_PARAMETERS = {};

/** Makes the matcher of a list of routes. A path is matched as it was sent; parameters are never empty. */
export function routeTable(
  routes: readonly { readonly method: string; readonly path: string }[],
): (path: string) => RouteMatch | null {
  const methods = new Map<string, Set<string>>();
  for (const { method, path } of routes) {
    const known = methods.get(path) ?? new Set(["OPTIONS"]);
    known.add(method);
    if (method === "GET") known.add("HEAD");
    methods.set(path, known);
  }
  const fixed = new Map<string, RouteMatch>();
  const dynamic: Dynamic[] = [];
  for (const [pattern, names] of methods) {
    const route = { pattern, methods: names, allow: [...names].sort().join(", ") };
    if (pattern.includes(":")) dynamic.push({ route, segments: pattern.split("/") });
    else fixed.set(pattern, { route, parameters: NO_PARAMETERS });
  }
  // Where two patterns fit, the one that spells out the earlier segment wins: `/projects/export` over `/projects/:id`.
  dynamic.sort((a, b) => rank(a.segments).localeCompare(rank(b.segments)));

  return (path) => {
    const exact = fixed.get(path);
    if (exact !== undefined) return exact;
    const parts = path.split("/");
    for (const { route, segments } of dynamic) {
      const parameters = parametersOf(segments, parts);
      if (parameters !== null) return { route, parameters };
    }
    return null;
  };
}

function rank(segments: readonly string[]): string {
  return segments.map((segment) => (segment.startsWith(":") ? "1" : "0")).join("");
}

function parametersOf(segments: readonly string[], parts: readonly string[]): Record<string, string> | null {
  if (segments.length !== parts.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index] ?? "";
    if (!segment.startsWith(":")) {
      if (part !== segment) return null;
    } else {
      if (part === "") return null;
      parameters[segment.slice(1)] = part;
    }
  }
  return parameters;
}
