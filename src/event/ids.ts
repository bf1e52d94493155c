/** Deterministic event ids, for providers that name no id of their own. */
import { formatInstant, type Instant } from "./instant.ts";

/**
 * `{platform}-` and the hex SHA-256 of `{cloud}:{resource_id}:{event_type}:{timestamp}`, the timestamp RFC 3339
 * in UTC with its fraction trimmed.
 */
export function deterministicEventId(event: {
  readonly platform: string;
  readonly cloud: string;
  readonly resourceId: string;
  readonly eventType: string;
  readonly timestamp: Instant;
}): string {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(`${event.cloud}:${event.resourceId}:${event.eventType}:${formatInstant(event.timestamp)}`);
  return `${event.platform}-${hash.digest("hex")}`;
}
