/** A stored event as the API answers it: the component `StoredEvent`, its payload put in digit for digit. */
import type { StoredEvent } from "./event.ts";
import { formatInstant } from "./instant.ts";

/** The JSON text of one stored event. */
export function storedEventJson(event: StoredEvent): string {
  return (
    `{"event_id":${JSON.stringify(event.eventId)}` +
    `,"timestamp":"${formatInstant(event.timestamp)}"` +
    `,"event_type":${JSON.stringify(event.eventType)}` +
    `,"platform":${JSON.stringify(event.platform)}` +
    `,"cloud":${JSON.stringify(event.cloud)}` +
    `,"resource_type":${JSON.stringify(event.resourceType)}` +
    `,"resource_id":${JSON.stringify(event.resourceId)}` +
    `,"project_id":${JSON.stringify(event.projectId)}` +
    `,"source":"${event.source}"` +
    `,"payload":${event.payload ?? "null"}` +
    `,"received_at":"${formatInstant(event.receivedAt)}"}`
  );
}
