/** A stored event as the API answers it: the component `StoredEvent`, its payload put in digit for digit. */
import type { StoredEvent } from "./event.ts";
import { formatInstant } from "./instant.ts";
import { quote } from "./json-text.ts";

/** The JSON text of one stored event. */
export function storedEventJson(event: StoredEvent): string {
  return (
    `{"event_id":${quote(event.eventId)}` +
    `,"timestamp":"${formatInstant(event.timestamp)}"` +
    `,"event_type":${quote(event.eventType)}` +
    `,"platform":${quote(event.platform)}` +
    `,"cloud":${quote(event.cloud)}` +
    `,"resource_type":${quote(event.resourceType)}` +
    `,"resource_id":${quote(event.resourceId)}` +
    `,"project_id":${quote(event.projectId)}` +
    `,"source":"${event.source}"` +
    `,"payload":${event.payload ?? "null"}` +
    `,"received_at":"${formatInstant(event.receivedAt)}"}`
  );
}
