/** The read side's rows as the JSON texts that are answered. What the database gave as JSON goes in as it is. */

import { formatInstant, type Instant } from "../event/instant.ts";
import { quote } from "../event/json-text.ts";
import { storedEventJson } from "../event/stored.ts";
import { fold, foldEventOf, type Interval } from "../timeline/fold.ts";
import type { History } from "./history.ts";
import type { ResourceRow } from "./queries.ts";

function instantJson(value: Instant | null): string {
  return value === null ? "null" : `"${formatInstant(value)}"`;
}

/** The component `Resource`. */
export function resourceJson(row: ResourceRow): string {
  return (
    `{"cloud":${quote(row.cloud)}` +
    `,"resource_type":${quote(row.resourceType)}` +
    `,"resource_id":${quote(row.resourceId)}` +
    `,"platform":${quote(row.platform)}` +
    `,"project_id":${quote(row.projectId)}` +
    `,"state":${quote(row.state)}` +
    `,"size":${row.size}` +
    `,"created_at":${instantJson(row.createdAt)}` +
    `,"deleted_at":${instantJson(row.deletedAt)}` +
    `,"first_event_at":${instantJson(row.firstEventAt)}` +
    `,"last_event_at":${instantJson(row.lastEventAt)}` +
    `,"last_event_type":${quote(row.lastEventType)}` +
    `,"last_payload":${row.lastPayload ?? "null"}}`
  );
}

function intervalJson(interval: Interval): string {
  return (
    `{"from":${instantJson(interval.from)},"to":${instantJson(interval.to)}` +
    `,"state":${quote(interval.state)},"size":${interval.size}` +
    `,"project_id":${quote(interval.projectId)}}`
  );
}

/** The component `Lifecycle`: the intervals and warnings are folded from the events that the reader may see. */
export function lifecycleJson({ resource, events }: History): string {
  const { intervals, warnings } = fold(events.map(foldEventOf));
  return (
    `{"resource":${resourceJson(resource)}` +
    `,"events":[${events.map(storedEventJson).join(",")}]` +
    `,"intervals":[${intervals.map(intervalJson).join(",")}]` +
    `,"warnings":${JSON.stringify(warnings)}}`
  );
}
