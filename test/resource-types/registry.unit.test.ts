import { describe, expect, test } from "bun:test";
import { compileSizeSchema, SchemaRefused } from "../../src/resource-types/registry.ts";

/** The violations of a size, both given as JSON text. */
function check(schema: string, size: string): string[] {
  return compileSizeSchema(schema).check(JSON.parse(size));
}

const INSTANCE =
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["vcpus","ram_gb","disk_gb","flavor"],"properties":{"vcpus":{"type":"integer","minimum":1},"ram_gb":{"type":"number","exclusiveMinimum":0},"disk_gb":{"type":"number","minimum":0},"flavor":{"type":"string"}}}';

describe("the seeded schema of instances", () => {
  test.each([
    ['{"vcpus":1,"ram_gb":0.5,"disk_gb":0,"flavor":"m1"}', []],
    ['{"vcpus":2.0,"ram_gb":4,"disk_gb":40,"flavor":"m1","extra":{"any":[1]}}', []],
    ['{"ram_gb":4,"disk_gb":40,"flavor":"m1"}', ["'vcpus' is a required property"]],
    ['{"vcpus":0,"ram_gb":4,"disk_gb":40,"flavor":"m1"}', ["vcpus: must be >= 1"]],
    ['{"vcpus":1.5,"ram_gb":4,"disk_gb":40,"flavor":"m1"}', ["vcpus: must be integer"]],
    ['{"vcpus":"2","ram_gb":4,"disk_gb":40,"flavor":"m1"}', ["vcpus: must be integer"]],
    [
      '{"vcpus":1,"ram_gb":0,"disk_gb":-1,"flavor":null}',
      ["disk_gb: must be >= 0", "flavor: must be string", "ram_gb: must be > 0"],
    ],
    [
      "{}",
      [
        "'disk_gb' is a required property",
        "'flavor' is a required property",
        "'ram_gb' is a required property",
        "'vcpus' is a required property",
      ],
    ],
    ["[]", ["must be object"]],
  ])("of %p says %p", (size, expected) => {
    expect(check(INSTANCE, size).toSorted()).toEqual(expected);
  });
});

describe("messages", () => {
  test.each([
    ['{"enum":[4,6]}', "5", ["must be one of 4, 6"]],
    ['{"const":{"a":1}}', "5", ['must be {"a":1}']],
    ['{"type":["integer","null"]}', '"x"', ["must be integer or null"]],
    ['{"additionalProperties":false}', '{"x":1}', ["'x' is not an allowed property"]],
    [
      '{"properties":{"a":{"items":{"required":["b"]}}}}',
      '{"a":[{"b":1},{}]}',
      ["a.1: 'b' is a required property"],
    ],
    ['{"properties":{"a/b~c":{"minimum":1}}}', '{"a/b~c":0}', ["a/b~c: must be >= 1"]],
    ['{"dependentRequired":{"a":["b"]}}', '{"a":1}', ["'b' is a required property where 'a' is there"]],
    [
      '{"propertyNames":{"pattern":"^a"}}',
      '{"b":1}',
      ["the property name 'b' must match the pattern ^a", "'b' is not an allowed property name"],
    ],
    ['{"properties":{"a":false}}', '{"a":1}', ["a: is not allowed"]],
    ['{"format":"date"}', '"2026-02-29"', ['must match format "date"']],
    ['{"items":{"type":"string"}}', "[1,1]", ["0: must be string", "1: must be string"]],
  ])("%s of %s", (schema, size, expected) => {
    expect(check(schema, size)).toEqual(expected);
  });

  test("are at most twenty, and say how many more there are", () => {
    const messages = check(
      '{"items":{"type":"string"}}',
      JSON.stringify(Array.from({ length: 1_000 }, (_, i) => i)),
    );
    expect(messages).toHaveLength(21);
    expect(messages[0]).toBe("0: must be string");
    expect(messages[20]).toBe("and 980 more");
  });

  test("don't grow with names and values", () => {
    const long = "n".repeat(50_000);
    const [message = ""] = check(`{"required":["${long}"]}`, "{}");
    expect(message).toBe(`'${"n".repeat(100)}…' is a required property`);
    const [at = ""] = check('{"additionalProperties":{"type":"string"}}', `{"${long}":1}`);
    expect(at).toBe(`${"n".repeat(100)}…: must be string`);
  });
});

describe("numbers", () => {
  test.each([
    ["0.1", "0.3", true],
    ["0.1", "0.35", false],
    ["0.01", "19.99", true],
    ["0.01", "0.0000000001", false],
    ["0.1", "1e300", true],
    ["3", "1e20", false],
    ["1e-7", "0.0000003", true],
    ["1e-320", "1", true],
    ["0.1", "-0.7", true],
    ["0.1", "-0", true],
    ["1.5", "4.5", true],
  ])("multipleOf %s takes %s: %p", (divisor, value, fits) => {
    expect(check(`{"multipleOf":${divisor}}`, value)).toEqual(
      fits ? [] : [`must be a multiple of ${Number(divisor)}`],
    );
  });

  test("1.0 is an integer, and equal to 1", () => {
    expect(check('{"type":"integer","enum":[1]}', "1.0")).toEqual([]);
    expect(check('{"uniqueItems":true}', "[1,1.0]")).toEqual(["must not hold the same item twice"]);
  });

  test("past what JavaScript counts are past every bound", () => {
    expect(check('{"type":"number","minimum":0}', "1e400")).toEqual([]);
    expect(check('{"maximum":1e308}', "1e400")).toEqual(["must be <= 1e+308"]);
    expect(check('{"minimum":0}', "-1e400")).toEqual(["must be >= 0"]);
    expect(check('{"multipleOf":2}', "1e400")).toEqual(["must be a multiple of 2"]);
  });
});

describe("uniqueItems", () => {
  test.each([
    ['[{"a":1,"b":[2]},{"b":[2],"a":1}]', false],
    ['[{"a":1},{"a":true}]', true],
    ['[1,true,"1",null,[1],{"1":1}]', true],
    ["[0,-0]", false],
    ['["a","b","a"]', false],
  ])("%s: %p", (items, unique) => {
    expect(check('{"uniqueItems":true}', items)).toEqual(unique ? [] : ["must not hold the same item twice"]);
  });

  test("of a hundred thousand takes no time", () => {
    const start = performance.now();
    expect(
      check('{"uniqueItems":true}', JSON.stringify(Array.from({ length: 100_000 }, (_, i) => i))),
    ).toEqual([]);
    expect(performance.now() - start).toBeLessThan(3_000);
  });
});

describe("references", () => {
  test.each([
    ['{"$ref":"#/$defs/a%25b~1c","$defs":{"a%b/c":{"type":"string"}}}', "1"],
    ['{"$ref":"#name","$defs":{"x":{"$anchor":"name","type":"string"}}}', "1"],
    [
      '{"$id":"https://example.com/size","$ref":"https://example.com/size#/$defs/a","$defs":{"a":{"type":"string"}}}',
      "1",
    ],
    ['{"$id":"https://example.com/size","$ref":"size#/$defs/a","$defs":{"a":{"type":"string"}}}', "1"],
    ['{"$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}', "1"],
  ])("%s are followed within the document", (schema, size) => {
    expect(check(schema, size)).toEqual(["must be string"]);
  });

  test("may go round where the size goes deeper", () => {
    const tree = '{"type":"object","properties":{"child":{"$ref":"#"},"n":{"type":"integer"}}}';
    expect(check(tree, '{"child":{"child":{"n":1}}}')).toEqual([]);
    expect(check(tree, '{"child":{"child":{"n":"x"}}}')).toEqual(["child.child.n: must be integer"]);
  });

  test("a name in a value is no reference", () => {
    expect(
      check(
        '{"enum":[{"$ref":"https://example.com/x"}],"default":{"$id":"x"}}',
        '{"$ref":"https://example.com/x"}',
      ),
    ).toEqual([]);
    expect(check('{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}', '{"$ref":1}')).toEqual([
      "$ref: must be string",
    ]);
  });
});

describe("what can't be enforced whole is refused", () => {
  test.each([
    [
      '{"$ref":"https://example.com/other"}',
      '$ref: refers to "https://example.com/other" outside the document',
    ],
    ['{"$ref":"other.json#/a"}', '$ref: refers to "other.json#/a" outside the document'],
    ['{"$id":"https://example.com/size","$ref":"other"}', '$ref: refers to "other" outside the document'],
    ['{"$ref":"https://json-schema.org/draft/2020-12/schema"}', "outside the document"],
    [
      '{"properties":{"a":{"$ref":"file:///etc/passwd"}}}',
      'properties.a.$ref: refers to "file:///etc/passwd" outside the document',
    ],
    ['{"$ref":"#/$defs/nothing"}', 'refers to "#/$defs/nothing", where the document has no schema'],
    ['{"$ref":"#/x","x":{"type":"string"}}', 'refers to "#/x", where the document has no schema'],
    ['{"$ref":"#nobody"}', 'refers to "#nobody", where the document has no schema'],
    ['{"$ref":"#/%ff"}', "is not percent-encoded UTF-8"],
    ['{"$ref":"#"}', "a $ref leads back to itself without going deeper"],
    [
      '{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}',
      "leads back to itself",
    ],
    ['{"$dynamicRef":"#a"}', "dynamic references are not supported"],
    ['{"$defs":{"a":{"$dynamicAnchor":"a"}}}', "dynamic references are not supported"],
    ['{"$recursiveRef":"#"}', "draft 2019-09"],
    ['{"$defs":{"a":{"$id":"inner"}}}', "$defs.a.$id: only the document itself may have one"],
    ['{"$vocabulary":{}}', "own vocabularies are not supported"],
    [
      '{"$schema":"http://json-schema.org/draft-07/schema#"}',
      "must be https://json-schema.org/draft/2020-12/schema",
    ],
    ['{"unevaluatedItems":false}', "not enforced reliably"],
    [
      '{"unevaluatedProperties":false,"properties":{"a":{"contains":{}}}}',
      "together with contains it is not enforced reliably",
    ],
    ['{"unevaluatedProperties":false,"if":{"properties":{"a":true}}}', "an if that lacks then or else"],
    ['{"dependencies":{"a":["b"]}}', "use dependentRequired or dependentSchemas"],
    ['{"additionalItems":false}', "use prefixItems and items"],
    ['{"type":"string","nullable":true}', "use a list of types"],
    ['{"format":"email"}', "is not one of the formats that are enforced"],
    ['{"format":"nonsense"}', "is not one of the formats that are enforced"],
    ['{"pattern":"(?=a)"}', "pattern: it looks ahead or behind"],
    ['{"patternProperties":{"(":{}}}', "no regular expression"],
    ['{"type":"strin"}', "it is no schema of draft 2020-12: type must be equal to one of the allowed values"],
    ['{"minimum":"1"}', "it is no schema of draft 2020-12: minimum must be number"],
    ['{"properties":{"a":1}}', "properties.a: must be a schema: an object or a boolean"],
    ['{"properties":[]}', "properties: must be an object of schemas"],
    ['{"allOf":{}}', "allOf: must be a list of schemas"],
    ['{"maximum":1e400}', "maximum: is a number out of range"],
    ['{"required":["__proto__"]}', 'may not name "__proto__"'],
    ['{"properties":{"__proto__":{}}}', 'may not name "__proto__"'],
    ['{"title":"\\ud800"}', "title: holds half a surrogate pair"],
    [
      `{"$comment":"a"${',"not":{'.repeat(200)}${"}".repeat(200)}}`.replaceAll("{,", "{"),
      "it nests too deep",
    ],
    ["[]", "must be an object"],
    ["true", "must be an object"],
    ["{", "it is not JSON"],
  ])("%s", (schema, reason) => {
    expect(() => compileSizeSchema(schema)).toThrow(SchemaRefused);
    // The refusal is remembered as faithfully as a schema.
    expect(() => compileSizeSchema(schema)).toThrow(reason);
  });
});

describe("bounds", () => {
  test("definitions that each refer twice to the next one don't take for ever", () => {
    const defs: Record<string, object> = { a40: {} };
    for (let i = 0; i < 40; i++)
      defs[`a${i}`] = { allOf: [{ $ref: `#/$defs/a${i + 1}` }, { $ref: `#/$defs/a${i + 1}` }] };
    const schema = JSON.stringify({ $defs: defs, properties: { x: { $ref: "#/$defs/a0" } } });
    expect(check(schema, '{"x":1}')).toEqual(["takes too many steps to be held to the size schema"]);
    expect(check(schema, '{"y":1}')).toEqual([]);
  });

  test("a document holds at most 1000 schemas", () => {
    const properties = (count: number) =>
      JSON.stringify({
        properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, {}])),
      });
    expect(check(properties(999), "{}")).toEqual([]);
    expect(() => compileSizeSchema(properties(1_000))).toThrow("it holds more than 1000 schemas");
  });

  test("a thousand other schemas push one out of the cache, and it compiles again", () => {
    const first = compileSizeSchema('{"title":"first"}');
    expect(compileSizeSchema('{"title":"first"}')).toBe(first);
    for (let i = 0; i < 600; i++) compileSizeSchema(`{"title":"${i}"}`);
    expect(compileSizeSchema('{"title":"first"}')).not.toBe(first);
  });
});

describe("annotations", () => {
  test("are no rules: unknown keywords, titles, defaults, content", () => {
    const schema =
      '{"title":"t","default":5,"x-unit":"GiB","contentMediaType":"application/json","examples":[1],"deprecated":true}';
    expect(check(schema, '"anything"')).toEqual([]);
  });
});

describe("formats", () => {
  test.each([
    ["date-time", "2026-03-01T08:00:00.123456789Z", true],
    ["date-time", "2026-03-01t08:00:00+05:30", true],
    ["date-time", "1998-12-31T15:59:60-08:00", true],
    ["date-time", "1998-12-31T23:58:60Z", false],
    ["date-time", "2026-03-01T24:00:00Z", false],
    ["date-time", "2026-03-01T08:00:00+01", false],
    ["date-time", "2026-03-01T08:00:00", false],
    ["date-time", "2026-03-01", false],
    ["date", "2024-02-29", true],
    ["date", "1900-02-29", false],
    ["date", "2026-04-31", false],
    ["date", "2026-4-3", false],
    ["time", "08:00:00Z", true],
    ["time", "08:00:00", false],
    ["uuid", "2EB8AA08-AA98-11EA-B4AA-73B441D16380", true],
    ["uuid", "urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380", false],
    ["ipv4", "10.0.0.1", true],
    ["ipv4", "10.0.0.256", false],
    ["ipv6", "::1", true],
    ["ipv6", "12345::", false],
  ])("%s %p: %p", (format, text, fits) => {
    expect(check(`{"format":"${format}"}`, JSON.stringify(text))).toEqual(
      fits ? [] : [`must match format "${format}"`],
    );
  });

  test("say nothing of what is no text", () => {
    expect(check('{"format":"date"}', "5")).toEqual([]);
  });
});
