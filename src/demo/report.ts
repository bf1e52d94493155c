/** What the demo prints, made of the API's answers. Pure. */
import { type Column, PLAIN, renderTable, type Style } from "../commands/table.ts";
import { type Instant, parseInstant } from "../event/instant.ts";
import type { Ingested, InventoryItem, Life } from "./answers.ts";
import { humanDuration } from "./duration.ts";
import { SAMPLE_CLOUD, type TellingLife } from "./sample.ts";

/** One post and what became of it. */
export interface Post {
  readonly what: string;
  readonly result: Ingested;
}

/** The fate of each post. */
export function ingestTable(posts: readonly Post[], style: Style = PLAIN): string {
  const right = (title: string) => ({ title, align: "right" as const });
  return renderTable(
    ["Posted", right("Accepted"), right("Duplicates"), right("Rejected")],
    posts.map(({ what, result }) => [
      what,
      String(result.accepted),
      String(result.duplicates),
      String(result.rejected.length),
    ]),
    style,
  );
}

/** How many resources there are of each type and state, and of each type. */
export function inventoryTable(items: readonly InventoryItem[], style: Style = PLAIN): string {
  const counts = new Map<string, Map<string, number>>();
  for (const { resource_type, state } of items) {
    const states = counts.get(resource_type) ?? new Map<string, number>();
    counts.set(resource_type, states.set(state, (states.get(state) ?? 0) + 1));
  }
  const rows = [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([type, states]) =>
      [...states]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([state, count], at) => [at === 0 ? type : "", state, String(count)]),
    );
  rows.push(["all", "", String(items.length)]);
  return renderTable(["Type", "State", { title: "Resources", align: "right" }], rows, style);
}

/** `2026-11-02T09:00:34.278313Z` → `2026-11-02 09:00:34`. */
export function shortInstant(text: string): string {
  return text.replace("T", " ").replace(/(\.\d+)?Z$/, "");
}

function instantOf(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(`${text} ${instant}`);
  return instant;
}

/** `{vcpus: 1, ram_gb: 2}` → `1 vcpus, 2 ram_gb`; ids among the values are cut to their first part. */
function sizeText(size: Readonly<Record<string, unknown>>): string {
  return Object.entries(size)
    .map(([member, value]) => {
      const text = typeof value === "string" ? shortId(value) : JSON.stringify(value);
      if (member === "vcpus") return `${text} vCPU`;
      if (member === "ram_gb") return `${text} GB RAM`;
      if (member === "disk_gb") return `${text} GB disk`;
      if (member === "size_gb") return `${text} GB`;
      return `${member} ${text}`;
    })
    .sort((a, b) => Number(/^\d/.test(b)) - Number(/^\d/.test(a)))
    .join(", ");
}

/** A UUID or a hash, cut to what tells it apart on a screen; other texts as they are. */
export function shortId(text: string): string {
  return /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f-]{20,24}$/.test(text) ? `${text.slice(0, 8)}…` : text;
}

/** The projects that a life's intervals name, each once. */
function ownersOf(life: Life): string[] {
  return [...new Set(life.intervals.map(({ project_id }) => project_id))];
}

function projectName(id: string, projects: ReadonlyMap<string, string>): string {
  return projects.get(id) ?? shortId(id);
}

/**
 * A resource's intervals, with how long each one lasted; open ones are told as lasting until `now`. The project has a
 * column only where there is more than one.
 */
export function intervalTable(
  life: Life,
  projects: ReadonlyMap<string, string>,
  now: Instant,
  style: Style = PLAIN,
): string {
  const rows = life.intervals.map(({ from, to, state, size, project_id }) => {
    const until = to === null ? now : instantOf(to);
    const lasted = until - instantOf(from);
    return [
      shortInstant(from),
      to === null ? "(open)" : shortInstant(to),
      humanDuration(lasted < 0n ? 0n : lasted),
      state,
      sizeText(size),
      projectName(project_id, projects),
    ];
  });
  const columns: Column[] = ["From (UTC)", "To", { title: "Lasted", align: "right" }, "State", "Size"];
  return renderTable(ownersOf(life).length > 1 ? [...columns, "Project"] : columns, rows, style);
}

/** A telling life under its title, and how it ended. */
export function lifeReport(
  telling: TellingLife,
  life: Life,
  projects: ReadonlyMap<string, string>,
  now: Instant,
  style: Style = PLAIN,
): string {
  const { resourceType, resourceId, title } = telling;
  const end = life.resource.deleted_at;
  const owners = ownersOf(life).map((id) => projectName(id, projects));
  const lines = [
    style.bold(title),
    style.dim(`${resourceType} ${resourceId} of ${owners.join(" and ")}, ${life.events.length} events`),
    "",
    intervalTable(life, projects, now, style),
  ];
  if (end !== null) lines.push(`Deleted ${shortInstant(end)}. Nothing is billed after that.`);
  for (const warning of life.warnings) lines.push(`Warning: ${warning}`);
  return lines.join("\n");
}

/** Where a demo listens, and what it may be asked with. */
export interface Access {
  /** `http://127.0.0.1:40123`. */
  readonly url: string;
  readonly ingestToken: string;
  readonly adminToken: string;
}

/** `text` as one word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Commands to copy and paste: each stands alone, and none needs quoting by hand. */
export function curlLines(
  access: Access,
  internalToken: string,
  event: string,
  telling: TellingLife,
): { what: string; line: string }[] {
  const read = `curl -sS -H ${quoted(`Authorization: Bearer ${access.adminToken}`)}`;
  const write = `curl -sS -H ${quoted(`Authorization: Bearer ${access.ingestToken}`)}`;
  const at = (path: string) => quoted(`${access.url}${path}`);
  const path = [SAMPLE_CLOUD, telling.resourceType, telling.resourceId].map(encodeURIComponent).join("/");
  return [
    {
      what: "The servers that are alive",
      line: `${read} ${at("/api/v1/resources?resource_type=instance")}`,
    },
    {
      what: "One life: events, intervals, warnings",
      line: `${read} ${at(`/api/v1/resources/${path}/lifecycle`)}`,
    },
    {
      what: "An event, as a collector sends it (this one is stored already: a duplicate)",
      line: `${write} -H 'Content-Type: application/json' -d ${quoted(event)} ${at("/api/v1/events")}`,
    },
    {
      what: "A reconciliation run over the cloud, now",
      line: `curl -sS -X POST -H ${quoted(`Authorization: Bearer ${internalToken}`)} ${at(`/internal/sync/${SAMPLE_CLOUD}`)}`,
    },
    { what: "What Prometheus reads", line: `curl -sS ${at("/metrics")}` },
  ];
}
