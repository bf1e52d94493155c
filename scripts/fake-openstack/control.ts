/** A way to look into a running fake cloud and to steer it, for hands and for other processes. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { SERVICES, type ServiceName } from "../../src/demo/openstack/service.ts";
import { formatInstant } from "../../src/event/instant.ts";
import type { FakeCloud } from "./fake-cloud.ts";
import type { Fault } from "./faults.ts";
import { later } from "./furnishing.ts";

const Service = Type.Union(SERVICES.map((name) => Type.Literal(name)));

const Rule = Type.Object(
  {
    service: Service,
    kind: Type.String(),
    status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
    retry_after: Type.Optional(Type.Integer({ minimum: 0 })),
    ms: Type.Optional(Type.Integer({ minimum: 0 })),
    containing: Type.Optional(Type.String()),
    skip: Type.Optional(Type.Integer({ minimum: 0 })),
    times: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  { additionalProperties: false },
);
type Rule = Static<typeof Rule>;

/** What is wrong with what was asked. */
export class NotUnderstood extends Error {}

const BARE = [
  "cut",
  "html",
  "endless-next",
  "same-next",
  "repeated-page",
  "moved-item",
  "other-host",
  "unknown-status",
  "expired-token",
] as const;

/** Every kind of fault, and what it takes. */
export const FAULT_KINDS: readonly string[] = ["down", "status", "slow", ...BARE];

function faultOf({ kind, status, retry_after, ms }: Rule): Fault {
  if (kind === "status" && status !== undefined) {
    return { kind, status, ...(retry_after === undefined ? {} : { retryAfter: retry_after }) };
  }
  if (kind === "slow" && ms !== undefined) return { kind, ms };
  const bare = BARE.find((name) => name === kind);
  if (bare === undefined) throw new NotUnderstood(`no such fault, or not all that it takes: ${kind}`);
  return { kind: bare };
}

/**
 * Lets a fault in.
 * @throws {NotUnderstood} where it is none
 */
export async function fail(cloud: FakeCloud, asked: unknown): Promise<void> {
  const rule = checked(Rule, asked);
  if (rule.kind === "down") {
    await cloud.services.stop(rule.service);
    return;
  }
  const { service, containing, skip, times } = rule;
  cloud.faults.add({
    service,
    fault: faultOf(rule),
    ...(containing === undefined ? {} : { containing }),
    ...(skip === undefined ? {} : { skip }),
    ...(times === undefined ? {} : { times }),
  });
}

function checked<S extends TSchema>(schema: S, value: unknown): Static<S> {
  if (Value.Check(schema, value)) return value;
  const [first] = Value.Errors(schema, value);
  throw new NotUnderstood(`${first?.path ?? ""} ${first?.message ?? "is not understood"}`.trim());
}

/** Ends every fault. */
export function heal(cloud: FakeCloud): void {
  cloud.faults.clear();
  for (const service of SERVICES) cloud.services.start(service);
}

function state(cloud: FakeCloud): object {
  const { world, services, faults, living } = cloud;
  const cpu = process.cpuUsage();
  return {
    now: formatInstant(world.now),
    living: living.living,
    auth_url: services.authUrl,
    faults: faults.rules,
    requests: cloud.requests,
    busy_ms: services.busyMs,
    cpu_ms: (cpu.user + cpu.system) / 1_000,
  };
}

/**
 * Listens on a port of the loopback address.
 *
 * - `GET /` tells the clock, the resources, the faults and the time spent on answers
 * - `POST /faults` `{"service": "nova", "kind": "status", "status": 503, "times": 2}` lets one in; `DELETE /faults` ends all
 * - `POST /advance` `{"seconds": 600}` lets the cloud's time pass
 * - `POST /drift` `{"count": 1000}` does so many things at once, and tells nobody
 * - `GET /events` gives what a collector was told since the last time, a JSON array
 */
export function startControl(cloud: FakeCloud, port: number): Bun.Server<undefined> {
  return Bun.serve({
    hostname: "127.0.0.1",
    port,
    fetch: async (request) => {
      try {
        return await controlled(cloud, request);
      } catch (error) {
        if (!(error instanceof NotUnderstood || error instanceof SyntaxError)) throw error;
        return Response.json({ error: error.message }, { status: 400 });
      }
    },
  });
}

async function controlled(cloud: FakeCloud, request: Request): Promise<Response> {
  const { living, world } = cloud;
  const asked = `${request.method} ${new URL(request.url).pathname}`;
  switch (asked) {
    case "GET /":
      break;
    case "GET /events":
      return Response.json(living.drain());
    case "POST /faults":
      await fail(cloud, await request.json());
      break;
    case "DELETE /faults":
      heal(cloud);
      break;
    case "POST /advance": {
      const { seconds } = checked(
        Type.Object({ seconds: Type.Number({ minimum: 0 }) }),
        await request.json(),
      );
      living.advance(later(world.now, seconds));
      break;
    }
    case "POST /drift": {
      const count = Type.Object({ count: Type.Integer({ minimum: 0 }) });
      living.drift(checked(count, await request.json()).count);
      break;
    }
    default:
      return Response.json({ error: `there is no ${asked}` }, { status: 404 });
  }
  return Response.json(state(cloud));
}

/** `nova:status=503:times=2`, as it is written on a command line. @throws {NotUnderstood} */
export function parseFault(text: string): unknown {
  const [service, first = "", ...rest] = text.split(":");
  const rule: Record<string, string | number> = {};
  const put = (name: string, value: string) => {
    rule[name] = /^\d+$/.test(value) ? Number(value) : value;
  };
  const [kind = "", value] = first.split("=");
  rule.kind = kind;
  if (value !== undefined) put(kind === "slow" ? "ms" : kind, value);
  for (const part of rest) {
    const at = part.indexOf("=");
    if (at < 1) throw new NotUnderstood(`${part} in ${text} is not name=value`);
    put(part.slice(0, at), part.slice(at + 1));
  }
  return { service, ...rule };
}

/** A service's name, checked. @throws {NotUnderstood} */
export function parseService(text: string): ServiceName {
  const name = SERVICES.find((service) => service === text);
  if (name === undefined) throw new NotUnderstood(`${text} is none of ${SERVICES.join(", ")}`);
  return name;
}
