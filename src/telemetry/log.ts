/**
 * The log: one JSON line a fact, on stdout. Every line that a request causes carries its id, wherever in the
 * code it is written. No line ever holds a token.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type DestinationStream, destination, pino } from "pino";

export type LogLevel = "DEBUG" | "INFO" | "WARN" | "ERROR";

/** What a line carries beyond its message. An `Error` is written with its name, code, message and stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes log lines. No method ever throws: a log that fails must not fail what it tells of. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

const requestIds = new AsyncLocalStorage<string>();

/** Runs `work` so that every line it logs, now or after an await, carries `request_id`. */
export function withRequestId<T>(requestId: string, work: () => T): T {
  return requestIds.run(requestId, work);
}

/** The id of the request that is being worked on, or undefined outside of one. */
export function currentRequestId(): string | undefined {
  return requestIds.getStore();
}

/**
 * Makes a logger.
 * @param level the least level that is written.
 * @param write where a line (with its newline) goes; stdout unless told. Tests capture here.
 */
export function createLogger(level: LogLevel, write?: (line: string) => void): Logger {
  const out = write ?? stdout();
  // No pino transport: those are worker threads, which find no script inside a compiled executable.
  const stream: DestinationStream = { write: (line) => out(withoutTokens(line)) };
  const log = pino(
    {
      level: level.toLowerCase(),
      base: null,
      messageKey: "message",
      timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label.toUpperCase() }) },
      mixin: () => {
        const requestId = requestIds.getStore();
        return requestId === undefined ? {} : { request_id: requestId };
      },
    },
    stream,
  );
  const at =
    (name: "debug" | "info" | "warn" | "error") =>
    (message: string, fields: LogFields = {}): void => {
      try {
        if (log.isLevelEnabled(name)) log[name](plain(fields), message);
      } catch {
        // A field that can't be written (a getter that throws) or a closed stdout: the line is lost, no more.
      }
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** stdout, written synchronously: the last lines before an exit are the ones that matter. */
function stdout(): (line: string) => void {
  const stream = destination({ dest: 1, sync: true });
  // A reader that went away (EPIPE) is announced as an event; unheard, it would end the process.
  stream.on("error", () => {});
  return (line) => {
    stream.write(line);
  };
}

/** Errors as fields that JSON can hold: JSON.stringify would make `{}` of them. */
function plain(fields: LogFields): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    result[name] = value instanceof Error ? errorFields(value) : value;
  }
  return result;
}

function errorFields(error: Error): Record<string, unknown> {
  const code = "code" in error ? error.code : undefined;
  return {
    name: error.name,
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    // PostgreSQL's SQLSTATE, where bun:sql tells it.
    ...("errno" in error && error.errno !== undefined ? { errno: error.errno } : {}),
    message: error.message,
    stack: error.stack,
    ...(error.cause instanceof Error ? { cause: errorFields(error.cause) } : {}),
  };
}

/** The last net under "never a token in the log": what looks like one of ours is cut. */
function withoutTokens(line: string): string {
  return line.includes("tly_") ? line.replace(/tly_([ia])_[0-9a-f]{8,}/gi, "tly_$1_[hidden]") : line;
}
