/**
 * JSON objects whose beginnings the server writes. A page of a thousand rows in eleven columns costs more in decoding
 * each value, and in writing all of them down again, than the server takes to put them together.
 */
import type { Queryable } from "./connection.ts";

/** A member that is a text: its name, and the SQL of its value, which is never null. */
export interface TextMember {
  readonly name: string;
  readonly sql: string;
}

/** The SQL of an instant as it is answered, without quotes. The session's `datestyle` is ISO (pool.ts). */
export function instantSql(column: string): string {
  return `replace((${column} AT TIME ZONE 'UTC')::text, ' ', 'T') || 'Z'`;
}

/** The same as JSON: with its quotes, or `null`. */
export function instantJsonSql(column: string): string {
  return `coalesce('"' || ${instantSql(column)} || '"', 'null')`;
}

/** The beginning of an object: `{"event_id":"…","source":"…"`, members that are texts, without a closing brace. */
export class ObjectHead {
  readonly #members: readonly TextMember[];
  readonly #plain: RegExp;

  constructor(members: readonly TextMember[]) {
    this.#members = members;
    const plain = members.map(({ name }) => `"${name}":"[^"\\\\\\u0000-\\u001f]*"`);
    this.#plain = new RegExp(`^\\{${plain.join(",")}$`);
  }

  /** @param escaped false puts the values in as they are: the text is JSON only if `isPlain` says so. */
  sql(escaped: boolean): string {
    return escaped
      ? `'{' || ${this.#members.map(({ name, sql }) => `'"${name}":' || to_json(${sql})`).join(" || ',' || ")}`
      : `'{${this.#members.map(({ name, sql }) => `"${name}":"' || ${sql} || '"`).join(",")}'`;
  }

  /**
   * Whether no value of a head that was written unescaped holds anything that JSON escapes. The text has no more quotes
   * than the frame has, and all of those in their places, so that no value can stand in for a part of it.
   */
  isPlain(head: string): boolean {
    return this.#plain.test(head);
  }
}

/**
 * Runs a statement whose rows begin with a head. Escaping each value costs the server more than all else that it
 * does for the row, and next to none needs it: so the heads come unescaped, and where one doesn't stand the check, the
 * statement runs once more.
 * @param text the statement with the head's SQL in place, which names it `head`.
 */
export async function readObjects<R extends { readonly head: string }>(
  db: Queryable,
  head: ObjectHead,
  text: (head: string) => string,
  values: readonly string[],
): Promise<readonly R[]> {
  const rows: R[] = await db.unsafe(text(head.sql(false)), [...values]);
  if (rows.every((row) => head.isPlain(row.head))) return rows;
  return await db.unsafe(text(head.sql(true)), [...values]);
}
