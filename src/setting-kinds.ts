/** The kinds of values that settings take: how each is read, what is wrong with it, and what of it may be shown. */
import { resolve } from "node:path";
import { parseDatabaseUrl } from "./database/address.ts";

/** A value that was read, or what is wrong with its text. */
export type Reading<T> = { value: T } | { fault: string };

/** One row of the table. */
export interface Variable<T> {
  readonly name: string;
  /** Values that it takes, for people. */
  readonly takes: string;
  readonly about: string;
  /** What holds when it is unset, and how `tally config` shows that. */
  readonly fallback: T;
  readonly unset: string;
  /** Also taken from the file that `<name>_FILE` names. */
  readonly fromFile: boolean;
  /** Hides what must not be shown. */
  readonly mask: (text: string) => string;
  readonly read: (text: string) => Reading<T>;
}

/** Makes a row. A kind that masks is a secret, and may come from a file. */
export function variable<T>(
  name: string,
  about: string,
  fallback: T,
  kind: { takes: string; read: (text: string) => Reading<T>; mask?: (text: string) => string },
  unset = String(fallback),
): Variable<T> {
  const { takes, read, mask } = kind;
  return {
    name,
    about,
    fallback,
    unset,
    takes,
    read,
    fromFile: mask !== undefined,
    mask: mask ?? ((t) => t),
  };
}

/** One of a few words. */
export function oneOf<const T extends string>(...names: T[]) {
  const takes = names.join(" | ");
  return {
    takes,
    read: (text: string): Reading<T> => {
      const value = names.find((name) => name === text);
      return value === undefined ? { fault: `must be one of ${names.join(", ")}` } : { value };
    },
  };
}

/** A whole number, in decimal digits only. */
export function integer(least: number, most: number) {
  return {
    takes: `${least} to ${most}`,
    read: (text: string): Reading<number> => {
      const value = /^(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : Number.NaN;
      return value >= least && value <= most
        ? { value }
        : { fault: `must be an integer from ${least} to ${most}` };
    },
  };
}

/** Different names, separated by commas; each of 1 to `maxBytes` bytes. */
export function names(maxBytes: number) {
  return {
    takes: "names, comma-separated",
    read: (text: string): Reading<readonly string[]> => {
      const list = text.split(",").map((name) => name.trim());
      if (list.some((name) => name === "")) return { fault: "must not hold an empty name" };
      if (list.some((name) => Buffer.byteLength(name) > maxBytes)) {
        return { fault: `must hold names of at most ${maxBytes} bytes` };
      }
      return new Set(list).size < list.length ? { fault: "must not hold a name twice" } : { value: list };
    },
  };
}

/** A switch. */
export const flag = {
  takes: "true | false",
  read: (text: string): Reading<boolean> =>
    text === "true" || text === "false" ? { value: text === "true" } : { fault: "must be true or false" },
};

/** What a socket is bound to. */
export const host = {
  takes: "an address or a host name",
  read: (text: string): Reading<string> =>
    /^[A-Za-z0-9._:-]+$/.test(text)
      ? { value: text }
      : { fault: "must be an IP address or a host name, without a port" },
};

/** A directory; a relative one is taken from the working directory. */
export const path = {
  takes: "a directory",
  read: (text: string): Reading<string> =>
    text.includes("\0") ? { fault: "must be a path" } : { value: resolve(text) },
};

/** A file; a relative one is taken from the working directory. */
export const file = { ...path, takes: "a file" };

/** A PostgreSQL URL; shown without its password. */
export const databaseUrl = {
  takes: "postgres://user:password@host:port/database",
  read: (text: string): Reading<string> => {
    const address = parseDatabaseUrl(text);
    return typeof address === "string" ? { fault: address } : { value: text };
  },
  mask: (text: string): string => {
    const address = parseDatabaseUrl(text);
    if (typeof address === "string") return "***";
    const { user, password, host: server, port, database } = address;
    return `postgres://${user}${password === "" ? "" : ":***"}@${server}:${port}/${database}`;
  },
};

/** A bearer token; never shown. */
export const secret = {
  takes: "visible ASCII characters",
  // What can't stand in an Authorization header could never be sent back.
  read: (text: string): Reading<string> =>
    /^[!-~]+$/.test(text) ? { value: text } : { fault: "must be visible ASCII characters without spaces" },
  mask: () => "***",
};
