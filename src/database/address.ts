/**
 * Where a PostgreSQL server is. The URL is taken apart here, by our own rules, and handed to bun:sql in parts:
 * left to itself bun:sql lets PGDATABASE, PGUSER and DATABASE_URL of the environment win over a URL.
 */

/** What to connect to: an external server's URL, or the embedded server's socket. */
export type DatabaseTarget = { readonly url: string } | SocketTarget;

/** A server that listens on a unix socket only. */
export interface SocketTarget {
  /** The directory that holds `.s.PGSQL.<port>`. */
  readonly socketDirectory: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

/** A URL's parts, all of them explicit. */
export interface DatabaseAddress {
  /** A host name, an IP address, or (with a leading slash) a directory that holds the server's socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly sslMode: SslMode;
  /** `options` of the URL, handed to the server as they are: `-c search_path=tally`. */
  readonly options: string | null;
  /** `pooler=transaction`: what answers there is a pooler that gives a server to each transaction, like PgBouncer. */
  readonly pooled: boolean;
}

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
export type SslMode = (typeof SSL_MODES)[number];

const PARAMETERS = ["host", "port", "user", "password", "dbname", "sslmode", "options", "pooler"] as const;
const IGNORED = ["application_name", "connect_timeout"];

function isSslMode(text: string): text is SslMode {
  return SSL_MODES.some((mode) => mode === text);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * Takes a PostgreSQL URL apart: `postgres://user:password@host:5432/database?sslmode=require`, or with a socket
 * `postgres:///database?host=/run/postgresql&user=tally`. Without `sslmode` TLS is used where the server offers it.
 * @returns the parts, or a string that says what is wrong with the URL (it never quotes it: it may hold a password).
 */
export function parseDatabaseUrl(text: string): DatabaseAddress | string {
  if (!/^postgres(ql)?:\/\//.test(text)) return "must begin with postgres:// or postgresql://";
  // A URL parser refuses an empty host, which is how a socket's URL is written.
  const filled = text.replace(/^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?=[/?#]|$)/, "$1-/").replace("-//", "-/");
  if (!URL.canParse(filled)) return "is no readable URL (percent-encode special characters of the password)";
  const url = new URL(filled);
  if (url.hash !== "") return "must not have a # part (percent-encode it as %23 in the password)";
  const given = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    if (IGNORED.includes(name)) continue;
    if (!PARAMETERS.some((known) => known === name)) {
      return `has the parameter ${name}, which is not one of ${PARAMETERS.join(", ")}`;
    }
    if (given.has(name)) return `has the parameter ${name} twice`;
    given.set(name, value);
  }
  const user = decoded(url.username);
  const password = decoded(url.password);
  const path = decoded(url.pathname.slice(1));
  if (user === null || password === null || path === null) return "holds a percent sign that encodes nothing";
  const host = given.get("host") ?? (url.hostname === "-" ? "" : url.hostname.replace(/^\[(.*)\]$/, "$1"));
  if (host === "") return "names no host";
  const portText = given.get("port") ?? url.port;
  const port = portText === "" ? 5432 : Number(portText);
  if (!/^\d*$/.test(portText) || port < 1 || port > 65_535) return "has a port that is not 1 to 65535";
  const name = given.get("user") ?? user;
  if (name === "") return "names no user";
  const sslMode = given.get("sslmode") ?? (host.startsWith("/") ? "disable" : "prefer");
  if (!isSslMode(sslMode)) return `has an sslmode that is not one of ${SSL_MODES.join(", ")}`;
  const pooler = given.get("pooler");
  if (pooler !== undefined && pooler !== "transaction") return "has a pooler that is not transaction";
  if (pooler !== undefined && given.has("options"))
    return "has options, which a pooler has no session for: set them on the role or the database";
  return {
    host,
    port,
    user: name,
    password: given.get("password") ?? password,
    database: given.get("dbname") ?? (path === "" ? name : path),
    sslMode,
    options: given.get("options") ?? null,
    pooled: pooler !== undefined,
  };
}
