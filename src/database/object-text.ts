/**
 * JSON objects that the server writes, and sends as one text. A page of a thousand rows in eleven columns each costs more
 * in decoding every value and writing all of them down again than the server takes to put them together.
 */
import type { Queryable } from "./connection.ts";

/** What a member's SQL gives, and never as NULL: any text; text that JSON needs not escape; or JSON. */
export type MemberKind = "text" | "plain" | "json";

/** A member of an object. */
export interface Member {
  readonly name: string;
  readonly kind: MemberKind;
  readonly sql: string;
}

/** Members that are texts, named like their columns. */
export function textMembers(table: string, names: readonly string[]): Member[] {
  return names.map((name) => ({ name, kind: "text", sql: `${table}.${name}` }));
}

/** An instant as it is answered; the session's `datestyle` is ISO (pool.ts). */
export function instantMember(name: string, column: string): Member {
  return { name, kind: "plain", sql: instantSql(column) };
}

/** The same where it may be NULL, which is null. */
export function instantOrNullMember(name: string, column: string): Member {
  return { name, kind: "json", sql: `coalesce('"' || ${instantSql(column)} || '"', 'null')` };
}

function instantSql(column: string): string {
  return `replace((${column} AT TIME ZONE 'UTC')::text, ' ', 'T') || 'Z'`;
}

/** A regular expression: what JSON escapes, and the few control characters that it need not. */
const ESCAPED = `E'["\\\\\\\\[:cntrl:]]'`;

/**
 * The SQL of an object, its members in their order.
 *
 * Hardly any text holds what JSON escapes. To escape each one all the same costs more than to look through all of a
 * row's at once, and to escape them where that finds something.
 */
export function objectSql(members: readonly Member[]): string {
  const last = members.findLastIndex(({ kind }) => kind === "text");
  const head = members.slice(0, last + 1);
  const texts = head.filter(({ kind }) => kind === "text").map(({ sql }) => sql);
  const written = (escaped: boolean) => head.map((member, at) => memberSql(member, at, escaped)).join(" || ");
  const rest = members.slice(last + 1).map((member, at) => memberSql(member, last + 1 + at, false));
  const parts = [
    `CASE WHEN (${texts.join(" || ")}) ~ ${ESCAPED} THEN ${written(true)} ELSE ${written(false)} END`,
    ...rest,
    "'}'",
  ];
  // Literals that meet are one.
  return parts.join(" || ").replaceAll("' || '", "");
}

function memberSql({ name, kind, sql }: Member, at: number, escaped: boolean): string {
  const key = `${at === 0 ? "{" : ","}"${name}":`;
  if (kind === "json") return `'${key}' || ${sql}`;
  if (kind === "text" && escaped) return `'${key}' || to_json(${sql})::text`;
  return `'${key}"' || ${sql} || '"'`;
}

/** RS: no JSON text holds it, and everything that is kept as JSON was read as such. */
const SEPARATOR = 0x1e;
const COMMA = 0x2c;

/** The SQL of a page's objects as one text. */
export const PAGE_TEXT = "string_agg(item, E'\\x1e')";

/** One page of a list of objects. */
export interface ObjectPage {
  /** The objects in UTF-8, a comma between each two. */
  readonly items: Buffer;
  /** The last of them, where there is a next page; else null. */
  readonly last: string | null;
}

export const EMPTY_PAGE: ObjectPage = { items: Buffer.alloc(0), last: null };

/**
 * Reads a page of objects. It stays the bytes that the server sent, on their way to the caller: half a megabyte takes
 * longer to become a text and bytes again than the server takes to send it.
 * @param list a statement whose rows have one column, `item`, an object's text; it reads one row more than the page may
 *   hold. An aggregate takes the rows of a subquery in its order where nothing else goes on beside it.
 * @param limit how many objects the page may hold, one at least
 * @returns a page whose bytes are the caller's own: the driver makes a value's anew
 */
export async function readPage(
  db: Queryable,
  list: string,
  values: readonly string[],
  limit: number,
): Promise<ObjectPage> {
  // Bytes come as text where statements aren't prepared; of that, bun:sql reads hexadecimal digits only.
  const [row]: { items: Buffer | null; found: number }[] = await db.unsafe(
    `SELECT ${inBytes(PAGE_TEXT)} AS items, count(*)::int AS found, set_config('bytea_output', 'hex', true)
       FROM (${list}) list`,
    [...values],
  );
  if (row === undefined || row.items === null) return EMPTY_PAGE;
  const more = row.found > limit;
  const items = more ? row.items.subarray(0, row.items.lastIndexOf(SEPARATOR)) : row.items;
  let last = 0;
  for (let at = items.indexOf(SEPARATOR); at !== -1; at = items.indexOf(SEPARATOR, last)) {
    items[at] = COMMA;
    last = at + 1;
  }
  return { items, last: more ? items.subarray(last).toString() : null };
}

/** The SQL of a text in UTF-8, as bytes. */
export function inBytes(text: string): string {
  return `convert_to(${text}, 'UTF8')`;
}
