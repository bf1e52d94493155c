/** What statements Tally's own code sends, so that a plain client can send the very same. */
import type { Queryable } from "../../src/database/connection.ts";

/** Passes everything on to `db`, and writes down each statement with its values in place. */
export function recording<Q extends Queryable>(db: Q, statements: string[]): Q {
  return new Proxy(db, {
    apply(target, self, args: [strings: readonly string[], ...values: unknown[]]) {
      const [strings, ...values] = args;
      statements.push(
        strings.map((part, i) => part + (i < values.length ? literal(values[i]) : "")).join(""),
      );
      return Reflect.apply(target, self, args);
    },
    get(target, name) {
      if (name === "unsafe") {
        return (text: string, values: readonly string[] = []) => {
          statements.push(text.replace(/\$(\d+)/g, (_, n) => literal(values[Number(n) - 1])));
          return target.unsafe(text, [...values]);
        };
      }
      if (name === "begin" && "begin" in target) {
        return (options: string, work: (tx: Queryable) => Promise<unknown>) =>
          target.begin(options, (tx) => work(recording(tx, statements)));
      }
      return Reflect.get(target, name);
    },
  });
}

function literal(value: unknown): string {
  return typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
}
