/** Lists that the server writes: each object is one text, whatever stands in it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { objectSql, readObjects, textMembers } from "../../src/database/object-text.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const ITEM = objectSql([...textMembers("l", ["name"]), { name: "raw", kind: "json", sql: "l.raw" }]);

/** The objects of rows of a name and a JSON text, in the order of their numbers. */
function read(rows: readonly (readonly [string, string])[], order = "n"): Promise<string[]> {
  const list = JSON.stringify(rows.map(([name, raw], n) => ({ n, name, raw })));
  return readObjects(
    database.db,
    `SELECT ${ITEM} AS item
       FROM (SELECT * FROM json_to_recordset($1::text::json) AS r(n int, name text, raw text)) l ORDER BY ${order}`,
    [list],
  );
}

test("no row is no object", async () => {
  expect(await read([])).toEqual([]);
});

test("objects come in the statement's order", async () => {
  const rows = [
    ["b", "1"],
    ["a", "2"],
  ] as const;
  expect(await read(rows)).toEqual(['{"name":"b","raw":1}', '{"name":"a","raw":2}']);
  expect(await read(rows, "name")).toEqual(['{"name":"a","raw":2}', '{"name":"b","raw":1}']);
  expect(await read(rows, "n DESC")).toEqual(['{"name":"a","raw":2}', '{"name":"b","raw":1}']);
});

test("what separates them in the answer is found in none of them", async () => {
  const rows = [
    ['a\u001eb"\n', '{\n\t"x": "\\u001e",\r\n"y": [1,\n2]}'],
    ["},{", '"},{"'],
  ] as const;
  expect(await read(rows)).toEqual([
    '{"name":"a\\u001eb\\"\\n","raw":{\n\t"x": "\\u001e",\r\n"y": [1,\n2]}}',
    '{"name":"},{","raw":"},{"}',
  ]);
});

test("a thousand keep their order", async () => {
  const rows = Array.from({ length: 1000 }, (_, n) => [`r${n}`, "null"] as const);
  expect(await read(rows)).toEqual(rows.map(([name]) => `{"name":"${name}","raw":null}`));
});
