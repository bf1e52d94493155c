/** What the checker finds wrong, each fault in words that an operator can act upon. */
import type { ResourceKey } from "../event/event.ts";

/** One thing that is wrong. */
export interface Fault {
  /** What it is about: a resource as in the API's paths, a project, a span of the audit log. */
  readonly where: string;
  /** What is wrong with it, one sentence without a full stop. */
  readonly what: string;
}

/** Told of each fault as it is found. */
export type Report = (fault: Fault) => void;

/** A resource as `GET /api/v1/resources/…` names it: each part percent-encoded. */
export function resourcePath({ cloud, resourceType, resourceId }: ResourceKey): string {
  return `resource ${[cloud, resourceType, resourceId].map(encodeURIComponent).join("/")}`;
}
