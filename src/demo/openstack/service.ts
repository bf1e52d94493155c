/** What the fake services have in common: how they are asked, and how they page. */
import { formatInstant, type Instant } from "../../event/instant.ts";
import type { Token } from "./token.ts";
import type { World } from "./world.ts";

export const SERVICES = ["keystone", "nova", "cinder", "neutron", "glance", "octavia"] as const;
export type ServiceName = (typeof SERVICES)[number];

/** One request to one service. */
export interface ServiceRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** `http://127.0.0.1:8774`, without a slash behind it. */
  readonly base: string;
  /** The JSON of its body; null without one. */
  readonly body: unknown;
}

/** A request that showed a valid token. */
export interface AuthorizedRequest extends ServiceRequest {
  readonly token: Token;
}

/** What a service answers; the body is sent as JSON. */
export interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export function reply(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, body, headers };
}

/** The largest page of nova, cinder, glance and octavia, whatever is asked for, where nothing else is configured. */
const MOST_A_PAGE = 1_000;

/** The page size that is asked for, within what the service allows; where none is, `usual` or the most. */
export function limitOf(world: World, query: URLSearchParams, usual = Number.POSITIVE_INFINITY): number {
  const most = world.pageLimit ?? MOST_A_PAGE;
  const asked = Number(query.get("limit") ?? usual);
  return asked > 0 ? Math.min(asked, most) : Math.min(usual, most);
}

/** The query with another marker, its members in the alphabet's order, as nova and cinder write it. */
export function sortedQuery(query: URLSearchParams, marker: string): string {
  const next = new URLSearchParams(query);
  next.set("marker", marker);
  next.sort();
  return next.toString();
}

/** `2026-11-30T20:00:02`: whole seconds, no zone. */
export function seconds(instant: Instant): string {
  return formatInstant(instant).slice(0, 19);
}
