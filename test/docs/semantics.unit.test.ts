/** docs/semantics.md says what the code does: its tables and examples are run. */
import { describe, expect, test } from "bun:test";
import * as bounds from "../../src/event/bounds.ts";
import { categorize } from "../../src/event/event.ts";
import { deterministicEventId } from "../../src/event/ids.ts";
import { formatInstant, type Instant, parseInstant } from "../../src/event/instant.ts";
import { isRefusal, screenItem } from "../../src/ingest/screen.ts";
import { type FoldEvent, fold } from "../../src/timeline/fold.ts";
import { blockAfter, page, rowsUnder } from "./markdown.ts";

const text = await page("docs/semantics.md");
const example = blockAfter(text, "## 1. The event", "json");

function at(instant: string): Instant {
  const parsed = parseInstant(instant);
  if (typeof parsed === "string") throw new Error(`${instant} ${parsed}`);
  return parsed;
}

/** What screening says of an item's text; null where it lets it through. */
function reasonFor(item: string): string | null {
  const scope = { platform: "openstack", cloud: "os-prod-eu1" };
  const outcome = screenItem(item, JSON.parse(item), 0, scope);
  return isRefusal(outcome) ? outcome.reason : null;
}

/** The example with members set. The texts are joined, not merged, so that numbers and escapes stay as written. */
function changed(members: string): string {
  return `${example.slice(0, example.lastIndexOf("}"))},${members.slice(1)}`;
}

describe("the event", () => {
  test("the example at the top passes", () => {
    expect(reasonFor(example)).toBeNull();
  });

  test.each(rowsUnder(text, "example type"))("%s is a %s", (type, kind) => {
    expect<string>(categorize(type ?? "")).toBe(kind ?? "");
  });
});

describe("refusals", () => {
  const rows = rowsUnder(text, "changed");

  test("the table is there", () => {
    expect(rows.length).toBeGreaterThan(12);
  });

  test.each(rows)("%s → %s", (members, reason) => {
    expect(reasonFor(changed(members ?? ""))).toBe(reason ?? "");
  });

  test("one 1e131071 fits an item, three don't", () => {
    const item = (n: number) =>
      changed(`{"payload": {"state": "a", "size": {"n": [${Array(n).fill("1e131071").join()}]}}}`);
    expect(reasonFor(item(1))).toBeNull();
    expect(reasonFor(item(3))).toContain("with its exponents spelled out");
  });

  test("the bounds are the code's", () => {
    const table = Object.fromEntries(rowsUnder(text, "what"));
    expect(table.event_id).toStartWith(`1 to ${bounds.EVENT_ID_MAX_BYTES} bytes`);
    expect(table.event_type).toBe(
      `1 to ${bounds.EVENT_TYPE_MAX_BYTES} bytes, then \`${bounds.EVENT_TYPE_PATTERN.source}\``,
    );
    expect(table["`platform`, `cloud`, `resource_type`, `resource_id`, `project_id`"]).toBe(
      `1 to ${bounds.IDENTIFIER_MAX_BYTES} bytes each`,
    );
    expect(table["payload.state"]).toBe(`1 to ${bounds.STATE_MAX_BYTES} bytes`);
    expect(table["one item"]).toStartWith(`${bounds.ITEM_MAX_BYTES / 1024} KiB`);
    expect(table.nesting).toStartWith(`${bounds.ITEM_MAX_DEPTH} levels`);
    expect(table["items in a request"]).toStartWith(`${bounds.BATCH_MAX_ITEMS};`);
  });
});

describe("worked examples", () => {
  const examples = [...text.matchAll(/<!-- fold: (\w+) -->/g)].map((match) => match[1] ?? "");

  /** The text of one example, up to the next heading. */
  function sectionOf(name: string): string {
    const start = text.indexOf(`<!-- fold: ${name} -->`);
    const end = text.indexOf("\n#", start);
    return text.slice(start, end);
  }

  /** The events of its first table, received in the order in which they stand. */
  function historyOf(section: string): FoldEvent[] {
    return rowsUnder(section, "timestamp").map(
      ([timestamp = "", eventType = "", state = "", size = "", projectId = ""], index) => ({
        timestamp: at(timestamp),
        receivedAt: BigInt(index) as Instant,
        eventId: `e${index}`,
        eventType,
        platform: "openstack",
        projectId,
        state: state === "" ? null : state,
        size: size === "" ? null : size,
      }),
    );
  }

  test("there are four", () => {
    expect(examples).toEqual(["march", "late", "transfer", "lives"]);
  });

  test.each(examples)("%s folds into the table below it", (name) => {
    const section = sectionOf(name);
    const { intervals } = fold(historyOf(section));
    expect(
      intervals.map(({ from, to, state, size, projectId }) => [
        formatInstant(from),
        to === null ? "open" : formatInstant(to),
        state,
        size,
        projectId,
      ]),
    ).toEqual(rowsUnder(section, "from"));
  });

  test.each(examples)("%s warns of what its text names", (name) => {
    const section = sectionOf(name);
    const named = [...section.matchAll(/with the warning `(\w+)`/g)].map((match) => match[1] ?? "");
    expect<string[]>([...fold(historyOf(section)).warnings]).toEqual(named);
  });

  test("March counts 14,400 + 14,400 + 15,840 minutes", () => {
    const [march, april] = [Number(at("2026-03-01T00:00:00Z")), Number(at("2026-04-01T00:00:00Z"))];
    const minutes = fold(historyOf(sectionOf("march"))).intervals.map(({ from, to }) => {
      // Present-day microseconds are exact in a double.
      const ends = Math.min(to === null ? april : Number(to), april);
      return (ends - Math.max(Number(from), march)) / 60_000_000;
    });
    expect(minutes).toEqual([14_400, 14_400, 15_840]);
  });
});

test("the example's deterministic id", () => {
  const { platform, cloud, resource_id, event_type, timestamp } = JSON.parse(example);
  expect(
    deterministicEventId({
      platform,
      cloud,
      resourceId: resource_id,
      eventType: event_type,
      timestamp: at(timestamp),
    }),
  ).toBe(blockAfter(text, "For the example at the top", "text").split("\n")[1] ?? "");
});
