/** Statements that are put together from conditions: lists with filters, a page at a time. */
import { formatInstant, type Instant } from "../event/instant.ts";

/** A page asked for: how many rows at most, and the position that they come after. */
export interface Page<Position> {
  readonly limit: number;
  readonly after: Position | null;
}

/** A statement that is put together: its conditions, and the values that they refer to by number. */
export class Statement {
  readonly values: string[] = [];

  /** Takes a value; gives its place in the text. */
  value(text: string): string {
    return `$${this.values.push(text)}::text`;
  }

  /** A value, not text: each text is a prepared statement that the connection keeps. */
  limit(rows: number): string {
    return `LIMIT ${this.value(String(rows))}::int`;
  }

  instant(value: Instant): string {
    return `${this.value(formatInstant(value))}::timestamptz`;
  }

  /** `column = value` for each value that is there. */
  equals(columns: Readonly<Record<string, string | null>>): string[] {
    return Object.entries(columns).flatMap(([column, value]) =>
      value === null ? [] : [`${column} = ${this.value(value)}`],
    );
  }
}

/** The conditions as a WHERE clause; none at all is none. */
export function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
}
