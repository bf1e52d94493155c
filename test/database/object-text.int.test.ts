/** Lists that the server writes: each object is one text, whatever stands in it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { objectSql, readPage, textMembers } from "../../src/database/object-text.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const ITEM = objectSql([...textMembers("l", ["name"]), { name: "raw", kind: "json", sql: "l.raw" }]);

/** A page of rows of a name and a JSON text, in the order of their numbers. */
async function read(
  rows: readonly (readonly [string, string])[],
  order = "n",
  limit = rows.length + 1,
): Promise<{ items: string; last: string | null }> {
  const list = JSON.stringify(rows.map(([name, raw], n) => ({ n, name, raw })));
  const page = await readPage(
    database.db,
    `SELECT ${ITEM} AS item
       FROM (SELECT * FROM json_to_recordset($1::text::json) AS r(n int, name text, raw text)) l
      ORDER BY ${order} LIMIT ${limit + 1}`,
    [list],
    limit,
  );
  return { ...page, items: page.items.toString() };
}

test("no row is no object", async () => {
  expect(await read([])).toEqual({ items: "", last: null });
});

test("objects come in the statement's order", async () => {
  const rows = [
    ["b", "1"],
    ["a", "2"],
  ] as const;
  const [b, a] = ['{"name":"b","raw":1}', '{"name":"a","raw":2}'];
  expect(await read(rows)).toEqual({ items: `${b},${a}`, last: null });
  expect(await read(rows, "name")).toEqual({ items: `${a},${b}`, last: null });
  expect(await read(rows, "n DESC")).toEqual({ items: `${a},${b}`, last: null });
});

const HOSTILE = [
  ['a\u001eb"\n', '{\n\t"x": "\\u001e",\r\n"y": [1,\n2]}'],
  ["},{", '"},{"'],
  ["$&", '"$1$`"'],
  ["ü界💾\u0085", '"\\ud800 ü界💾"'],
] as const;
const WRITTEN = [
  '{"name":"a\\u001eb\\"\\n","raw":{\n\t"x": "\\u001e",\r\n"y": [1,\n2]}}',
  '{"name":"},{","raw":"},{"}',
  '{"name":"$&","raw":"$1$`"}',
  '{"name":"ü界💾\u0085","raw":"\\ud800 ü界💾"}',
];

test("what separates them in the answer is found in none of them", async () => {
  expect(await read(HOSTILE)).toEqual({ items: WRITTEN.join(","), last: null });
});

test.each([1, 2, 3, 4, 5])(
  "a page of %d of four holds no more, and knows its last one where it is cut",
  async (limit) => {
    expect(await read(HOSTILE, "n", limit)).toEqual({
      items: WRITTEN.slice(0, limit).join(","),
      last: limit < 4 ? (WRITTEN[limit - 1] ?? "") : null,
    });
  },
);

test("a thousand keep their order", async () => {
  const rows = Array.from({ length: 1001 }, (_, n) => [`r${n}`, "null"] as const);
  const texts = rows.map(([name]) => `{"name":"${name}","raw":null}`);
  expect(await read(rows, "n", 1000)).toEqual({
    items: texts.slice(0, 1000).join(","),
    last: '{"name":"r999","raw":null}',
  });
});
