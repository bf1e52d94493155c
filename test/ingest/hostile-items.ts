/** Every rule of screening as an item that breaks it, with the reason that it must be given. */
import { itemText, payloadText } from "./items.ts";

export interface HostileItem {
  readonly name: string;
  readonly item: string;
  /** The exact reason, or what it must match. */
  readonly reason: string | RegExp;
  /** False for the one refusal that leaves no dead letter. */
  readonly deadLetter?: false;
}

const text = (value: string) => JSON.stringify(value);
const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const bytes = (name: string, got: number, max = 512) =>
  `schema: ${name}: must be 1 to ${max} bytes, got ${got}`;

export const HOSTILE_ITEMS: readonly HostileItem[] = [
  // 1. NUL
  ...[
    ["a value", itemText({ resource_id: '"a\\u0000b"' })],
    ["a payload key", itemText({ payload: payloadText({ "k\\u0000": "1" }) })],
    ["an unknown member", itemText({ extra: '["\\u0000"]' })],
  ].map(([where = "", item = ""]) => ({
    name: `NUL in ${where}`,
    item,
    reason: "schema: the item carries a NUL character, which cannot be stored",
  })),

  // 2. Schema: the item itself
  { name: "a string", item: '"x"', reason: "schema: the item must be a JSON object, got a string" },
  { name: "a number", item: "17", reason: "schema: the item must be a JSON object, got a number" },
  { name: "null", item: "null", reason: "schema: the item must be a JSON object, got null" },
  { name: "true", item: "true", reason: "schema: the item must be a JSON object, got a boolean" },
  { name: "an array", item: "[{}]", reason: "schema: the item must be a JSON object, got an array" },
  {
    name: "an empty object",
    item: "{}",
    reason:
      "schema: event_id: is missing; timestamp: is missing; event_type: is missing; platform: is missing; cloud: is missing; resource_type: is missing; resource_id: is missing; project_id: is missing; payload: is missing",
  },
  {
    name: "all broken rules at once",
    item: itemText({ event_id: '""', timestamp: "5", cloud: '"partner"', payload: "[]" }),
    reason:
      'schema: event_id: must be 1 to 256 bytes, got 0; timestamp: must be a string, got a number; cloud: "partner" is a virtual cloud, which never carries resources; payload: must be an object, got an array',
  },

  // Types before bounds, and bounds in bytes
  ...[
    "event_id",
    "timestamp",
    "event_type",
    "platform",
    "cloud",
    "resource_type",
    "resource_id",
    "project_id",
  ].flatMap((member) => [
    {
      name: `${member} missing`,
      item: itemText({ [member]: null }),
      reason: `schema: ${member}: is missing`,
    },
    {
      name: `${member} null`,
      item: itemText({ [member]: "null" }),
      reason: `schema: ${member}: must be a string, got null`,
    },
    {
      name: `${member} a number`,
      item: itemText({ [member]: "1" }),
      reason: `schema: ${member}: must be a string, got a number`,
    },
    {
      name: `${member} an object`,
      item: itemText({ [member]: "{}" }),
      reason: `schema: ${member}: must be a string, got an object`,
    },
  ]),
  {
    name: "event_id of 257 bytes",
    item: itemText({ event_id: text("a".repeat(257)) }),
    reason: bytes("event_id", 257, 256),
  },
  {
    name: "event_id of 129 ü",
    item: itemText({ event_id: text("ü".repeat(129)) }),
    reason: bytes("event_id", 258, 256),
  },
  ...["resource_type", "resource_id", "project_id"].flatMap((member) => [
    { name: `${member} empty`, item: itemText({ [member]: '""' }), reason: bytes(member, 0) },
    {
      name: `${member} of 513 bytes`,
      item: itemText({ [member]: text(`${"ü".repeat(256)}a`) }),
      reason: bytes(member, 513),
    },
    {
      name: `${member} of 300 ü`,
      item: itemText({ [member]: text("ü".repeat(300)) }),
      reason: bytes(member, 600),
    },
    {
      name: `${member} of 129 emoji`,
      item: itemText({ [member]: text("😀".repeat(129)) }),
      reason: bytes(member, 516),
    },
  ]),
  ...["platform", "cloud"].flatMap((member) => [
    { name: `${member} empty`, item: itemText({ [member]: '""' }), reason: bytes(member, 0) },
    {
      name: `${member} of 513 bytes`,
      item: itemText({ [member]: text("a".repeat(513)) }),
      reason: bytes(member, 513),
    },
  ]),
  {
    name: "platform meta",
    item: itemText({ platform: '"meta"' }),
    reason: 'schema: platform: "meta" is a virtual platform, which never carries resources',
  },
  {
    name: "platform partner",
    item: itemText({ platform: '"partner"' }),
    reason: 'schema: platform: "partner" is a virtual platform, which never carries resources',
  },
  {
    name: "cloud meta",
    item: itemText({ cloud: '"meta"' }),
    reason: 'schema: cloud: "meta" is a virtual cloud, which never carries resources',
  },

  // event_type
  { name: "event_type empty", item: itemText({ event_type: '""' }), reason: bytes("event_type", 0) },
  {
    name: "event_type over-long and out of pattern: named for its length, not quoted",
    item: itemText({ event_type: text("A".repeat(513)) }),
    reason: bytes("event_type", 513),
  },
  ...[
    "create",
    "Instance.create",
    "instance..create",
    ".create",
    "create.",
    "instance.créate",
    "a b.create",
    "a-b.create",
  ].map((type) => ({
    name: `event_type ${type}`,
    item: itemText({ event_type: text(type) }),
    reason: `schema: event_type: ${text(type)} does not match ^[a-z0-9_]+(\\.[a-z0-9_]+)+$`,
  })),
  {
    name: "event_type with a trailing newline",
    item: itemText({ event_type: '"instance.create\\n"' }),
    reason: 'schema: event_type: "instance.create\\n" does not match ^[a-z0-9_]+(\\.[a-z0-9_]+)+$',
  },

  // timestamp
  ...[
    "yesterday",
    "2026-03-01",
    "2026-03-01T08:00:00",
    "2026-03-01 08:00:00Z",
    "2026-02-30T08:00:00Z",
    "2026-03-01T08:00:60Z",
    "0000-03-01T08:00:00Z",
    "+12026-03-01T08:00:00Z",
    "294277-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "infinity",
    "",
  ].map((timestamp) => ({
    name: `timestamp ${timestamp}`,
    item: itemText({ timestamp: text(timestamp) }),
    reason: /^schema: timestamp: /,
  })),

  // source
  {
    name: "source guess",
    item: itemText({ source: '"guess"' }),
    reason: "schema: source: must be collector or reconciliation",
  },
  {
    name: "source null",
    item: itemText({ source: "null" }),
    reason: "schema: source: must be a string, got null",
  },
  {
    name: "source a number",
    item: itemText({ source: "1" }),
    reason: "schema: source: must be a string, got a number",
  },

  // payload
  {
    name: "create without payload",
    item: itemText({ payload: null }),
    reason: "schema: payload: is missing",
  },
  {
    name: "create with payload null",
    item: itemText({ payload: "null" }),
    reason: "schema: payload: must be an object, got null",
  },
  {
    name: "payload a string",
    item: itemText({ payload: '"{}"' }),
    reason: "schema: payload: must be an object, got a string",
  },
  {
    name: "payload of a delete an array",
    item: itemText({ event_type: '"i.delete"', payload: "[]" }),
    reason: "schema: payload: must be an object, got an array",
  },
  {
    name: "create with an empty payload",
    item: itemText({ payload: "{}" }),
    reason: "schema: payload.state: is missing; payload.size: is missing",
  },
  {
    name: "update without state",
    item: itemText({ event_type: '"i.update"', payload: "{}" }),
    reason: "schema: payload.state: is missing",
  },
  {
    name: "state null",
    item: itemText({ payload: payloadText({ state: "null" }) }),
    reason: "schema: payload.state: is missing",
  },
  {
    name: "state empty",
    item: itemText({ payload: payloadText({ state: '""' }) }),
    reason: bytes("payload.state", 0),
  },
  {
    name: "state a number",
    item: itemText({ payload: payloadText({ state: "1" }) }),
    reason: "schema: payload.state: must be a string, got a number",
  },
  {
    name: "state of 513 bytes",
    item: itemText({ payload: payloadText({ state: text(`${"ü".repeat(256)}a`) }) }),
    reason: bytes("payload.state", 513),
  },
  {
    name: "create without size",
    item: itemText({ payload: payloadText({ size: null }) }),
    reason: "schema: payload.size: is missing",
  },
  {
    name: "create with size null",
    item: itemText({ payload: payloadText({ size: "null" }) }),
    reason: "schema: payload.size: is missing",
  },
  {
    name: "size an array",
    item: itemText({ payload: payloadText({ size: "[]" }) }),
    reason: "schema: payload.size: must be an object, got an array",
  },
  {
    name: "size a string",
    item: itemText({ payload: payloadText({ size: '"2"' }) }),
    reason: "schema: payload.size: must be an object, got a string",
  },
  {
    name: "provider an array",
    item: itemText({ payload: payloadText({ provider: "[]" }) }),
    reason: "schema: payload.provider: must be an object, got an array",
  },
  {
    name: "provider null",
    item: itemText({ payload: payloadText({ provider: "null" }) }),
    reason: "schema: payload.provider: must be an object, got null",
  },

  // What the database can't hold
  ...[
    ["a value", itemText({ payload: payloadText({ x: '"\\ud800"' }) })],
    ["a low half first", itemText({ payload: payloadText({ x: '"\\udc00\\ud800"' }) })],
    ["a key", itemText({ payload: payloadText({ "\\uDBFF": "1" }) })],
    ["an identifier", itemText({ resource_id: '"vm-\\ud83d"' })],
  ].map(([where = "", item = ""]) => ({
    name: `lone surrogate: ${where}`,
    item,
    reason: "schema: the item carries a lone surrogate, which is no Unicode text",
  })),
  ...["1e400000", "-1e131072", "1e-16384", "1E+999999999999999999999"].map((number) => ({
    name: `number ${number}`,
    item: itemText({ payload: payloadText({ x: `[${number}]` }) }),
    reason: `schema: the item carries a number that cannot be stored: ${number}`,
  })),
  {
    name: "a few bytes that spell out as megabytes",
    item: itemText({ payload: payloadText({ x: `[${Array(100).fill("1e131071").join(",")}]` }) }),
    reason: /^schema: the item must be at most 262144 bytes with its exponents spelled out, got 131\d{5}$/,
  },
  {
    name: "65 levels deep",
    // Item and payload are two levels, so 63 more make 65.
    item: itemText({ payload: payloadText({ x: nested(63) }) }),
    reason: "schema: the item must nest at most 64 levels deep, got 65",
  },
  {
    name: "100,000 levels deep",
    item: itemText({ payload: payloadText({ x: nested(99_998) }) }),
    reason: "schema: the item must nest at most 64 levels deep, got 100000",
  },
  {
    name: "over 256 KiB",
    item: itemText({ payload: payloadText({ x: text("x".repeat(262_144)) }) }),
    reason: /^schema: the item must be at most 262144 bytes, got 262\d{3}$/,
  },
  {
    name: "over 256 KiB in bytes, not in characters",
    item: itemText({ payload: payloadText({ x: text("ü".repeat(140_000)) }) }),
    reason: /^schema: the item must be at most 262144 bytes, got 280\d{3}$/,
  },

  // 3. Scope
  { name: "another cloud", item: itemText({ cloud: '"os-2"' }), reason: "scope", deadLetter: false },
  { name: "another platform", item: itemText({ platform: '"vmware"' }), reason: "scope", deadLetter: false },

  // 4. Size schema
  {
    name: "a size without vcpus",
    item: itemText({ payload: payloadText({ size: '{"ram_gb":4,"disk_gb":40,"flavor":"m1.medium"}' }) }),
    reason: "size_schema: 'vcpus' is a required property",
  },
  {
    name: "an empty size",
    item: itemText({ payload: payloadText({ size: "{}" }) }),
    reason:
      "size_schema: 'vcpus' is a required property; 'ram_gb' is a required property; 'disk_gb' is a required property; 'flavor' is a required property",
  },
  {
    name: "vcpus 0",
    item: itemText({ payload: payloadText({ size: '{"vcpus":0,"ram_gb":4,"disk_gb":40,"flavor":"x"}' }) }),
    reason: /^size_schema: .*vcpus/,
  },
  {
    name: "vcpus 1.5",
    item: itemText({ payload: payloadText({ size: '{"vcpus":1.5,"ram_gb":4,"disk_gb":40,"flavor":"x"}' }) }),
    reason: /^size_schema: .*vcpus/,
  },
  {
    name: "ram_gb 0",
    item: itemText({ payload: payloadText({ size: '{"vcpus":1,"ram_gb":0,"disk_gb":40,"flavor":"x"}' }) }),
    reason: /^size_schema: .*ram_gb/,
  },
  {
    name: "an update with a bad size",
    item: itemText({ event_type: '"i.resize"', payload: '{"state":"active","size":{"vcpus":"2"}}' }),
    reason: /^size_schema: .*vcpus/,
  },
];
