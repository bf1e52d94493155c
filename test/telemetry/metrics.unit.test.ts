/** What is counted, and that labels can't be invented without bound. */
import { expect, test } from "bun:test";
import { createMetrics, MAX_LABEL_SETS } from "../../src/telemetry/metrics.ts";

const event = {
  platform: "openstack",
  cloud: "os-prod",
  resourceType: "instance",
  eventType: "compute.instance.create.end",
};

async function sample(metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> {
  const text = await metrics.registry.getSingleMetricAsString(name);
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("accepted events are counted by what they are", async () => {
  const metrics = createMetrics();
  const created = { event };
  const deleted = { event: { ...event, eventType: "compute.instance.delete.end" } };
  metrics.countIngested([created, deleted, created], "collector");
  metrics.countIngested([created], "collector");
  const labels = 'platform="openstack",cloud="os-prod",resource_type="instance"';
  expect(await sample(metrics, "tally_events_ingested_total")).toEqual([
    `tally_events_ingested_total{${labels},event_type="compute.instance.create.end",source="collector"} 3`,
    `tally_events_ingested_total{${labels},event_type="compute.instance.delete.end",source="collector"} 1`,
  ]);
});

test("a collector that makes types up fills one label set, not the memory", async () => {
  const metrics = createMetrics();
  const invented = Array.from({ length: MAX_LABEL_SETS + 500 }, (_, i) => ({
    event: { ...event, eventType: `a.t${i}` },
  }));
  metrics.countIngested(invented, "collector");
  const lines = await sample(metrics, "tally_events_ingested_total");
  expect(lines).toHaveLength(MAX_LABEL_SETS + 1);
  expect(lines.at(-1)).toBe(
    'tally_events_ingested_total{platform="openstack",cloud="os-prod",resource_type="other",event_type="other",source="collector"} 500',
  );
  for (let i = 0; i < MAX_LABEL_SETS + 7; i++) metrics.countUnvalidated("openstack", `t${i}`);
  const unvalidated = await sample(metrics, "tally_ingest_unvalidated_size_total");
  expect(unvalidated).toHaveLength(MAX_LABEL_SETS + 1);
  expect(unvalidated.at(-1)).toBe(
    'tally_ingest_unvalidated_size_total{platform="openstack",resource_type="other"} 7',
  );
});

test("nor do clouds that nobody issued a credential for, where all checks are off", async () => {
  const metrics = createMetrics();
  for (let i = 0; i < MAX_LABEL_SETS + 7; i++) {
    metrics.countIngested([{ event: { ...event, platform: `p${i}`, cloud: `c${i}` } }], "collector");
    metrics.countUnvalidated(`p${i}`, "robot");
    metrics.countDuplicates(`c${i}`, 2);
    metrics.countReplays(`c${i}`, 1);
  }
  const other = {
    tally_events_ingested_total:
      '{platform="other",cloud="other",resource_type="other",event_type="other",source="collector"} 7',
    tally_ingest_unvalidated_size_total: '{platform="other",resource_type="other"} 7',
    tally_events_deduplicated_total: '{cloud="other"} 14',
    tally_projection_replays_total: '{cloud="other"} 7',
  };
  for (const [name, last] of Object.entries(other)) {
    const lines = await sample(metrics, name);
    expect(lines).toHaveLength(MAX_LABEL_SETS + 1);
    expect(lines.at(-1)).toBe(`${name}${last}`);
  }
});

test("two apps in one process count for themselves", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.countDuplicates("os-prod", 5);
  expect(await sample(one, "tally_events_deduplicated_total")).toEqual([
    'tally_events_deduplicated_total{cloud="os-prod"} 5',
  ]);
  expect(await sample(other, "tally_events_deduplicated_total")).toEqual([]);
});

test("the process tells its CPU, memory and start", async () => {
  const text = await createMetrics().registry.metrics();
  for (const name of [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
    "nodejs_eventloop_lag_seconds",
  ]) {
    expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
  }
});
