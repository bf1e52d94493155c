/** The fake services against what real ones were recorded answering to the same requests. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type FakeCloud, startFakeCloud } from "../../../scripts/fake-openstack/fake-cloud.ts";
import { OWN_PROJECT } from "../../../scripts/fake-openstack/furnishing.ts";
import type { ServiceName } from "../../../src/demo/openstack/service.ts";
import { START } from "./scene.ts";

const Recording = Type.Object({
  request: Type.Object({
    path: Type.String(),
    headers: Type.Record(Type.String(), Type.String()),
  }),
  response: Type.Object({ status: Type.Integer(), body: Type.Record(Type.String(), Type.Unknown()) }),
});

let cloud: FakeCloud;
let projectId: string;
const tokens = new Map<string, string>();

beforeAll(async () => {
  cloud = startFakeCloud({ seed: 1, resources: 200, changesPerDay: 0, start: START });
  for (const name of ["collector", "reader", "halfway"]) {
    const project = {
      name: name === "collector" ? "collector" : OWN_PROJECT.name,
      domain: { name: "Default" },
    };
    const user = { name, domain: { name: "Default" }, password: `${name}-password` };
    const auth = { identity: { methods: ["password"], password: { user } }, scope: { project } };
    const answer = await fetch(`${cloud.services.authUrl}/auth/tokens`, {
      method: "POST",
      body: JSON.stringify({ auth }),
    });
    expect(answer.status).toBe(201);
    tokens.set(name, answer.headers.get("x-subject-token") ?? "");
  }
  projectId = [...cloud.world.projects.values()].find(({ name }) => name === "collector")?.id ?? "";
});

afterAll(async () => {
  await cloud.stop();
});

function recorded(service: ServiceName, name: string) {
  const path = join(import.meta.dir, "../recordings", service, `${name}.json`);
  return Value.Parse(Recording, JSON.parse(readFileSync(path, "utf8")));
}

/** Asks the fake service what the recording asked the real one. */
async function asked(service: ServiceName, name: string, account: string) {
  const { request, response } = recorded(service, name);
  const own = account === "collector" ? projectId : OWN_PROJECT.id;
  const path = request.path.replace(/^\/v3\/[0-9a-f]{32}/, `/v3/${own}`);
  const version = request.headers["OpenStack-API-Version"];
  const answer = await fetch(`${cloud.services.baseOf(service)}${path}`, {
    headers: {
      "X-Auth-Token": tokens.get(account) ?? "",
      ...(version === undefined ? {} : { "OpenStack-API-Version": version }),
    },
  });
  const body = Value.Parse(Type.Record(Type.String(), Type.Unknown()), await answer.json());
  return { real: response, fake: { status: answer.status, body } };
}

function firstOf(body: Readonly<Record<string, unknown>>, collection: string): Record<string, unknown> {
  const [first]: unknown[] = Array.isArray(body[collection]) ? body[collection] : [];
  return typeof first === "object" && first !== null ? { ...first } : {};
}

/** What a value is made of; null fits everything. */
function kind(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}

describe("an item has the members of a real one, each of its kind", () => {
  for (const [service, name, collection] of [
    ["nova", "servers-detail-all-2.47", "servers"],
    ["nova", "servers-detail-all-no-microversion", "servers"],
    ["nova", "flavors-detail-no-microversion", "flavors"],
    ["cinder", "volumes-detail-all", "volumes"],
    ["cinder", "types-is-public-none", "volume_types"],
    ["neutron", "floatingips-admin", "floatingips"],
    ["glance", "images-admin", "images"],
    ["octavia", "loadbalancers-admin", "loadbalancers"],
  ] as const) {
    test(`${service} ${name}`, async () => {
      const { real, fake } = await asked(service, name, "collector");
      expect(fake.status).toBe(real.status);
      const [ours, theirs] = [firstOf(fake.body, collection), firstOf(real.body, collection)];
      expect(Object.keys(ours).length).toBeGreaterThan(5);
      const odd = Object.entries(ours).filter(
        ([member, value]) =>
          !(member in theirs) ||
          (value !== null && theirs[member] !== null && kind(value) !== kind(theirs[member])),
      );
      // A server that boots from a volume has a text for an image; the recorded one has an object.
      expect(odd.map(([member]) => member).filter((member) => member !== "image")).toEqual([]);
    });
  }
});

describe("a refusal is the real one", () => {
  for (const [service, name, account] of [
    ["nova", "servers-detail-all-member-refused", "reader"],
    ["nova", "error-bad-marker", "collector"],
    ["nova", "error-bad-changes-since", "collector"],
    ["nova", "error-microversion-too-new", "collector"],
    ["nova", "error-invalid-token", "nobody"],
    ["cinder", "error-bad-marker", "collector"],
    ["cinder", "error-expired-token", "nobody"],
    ["neutron", "error-expired-token", "nobody"],
    ["glance", "error-unknown-marker", "collector"],
    ["octavia", "error-unknown-marker", "collector"],
    ["octavia", "loadbalancers-without-octavia-role-refused", "reader"],
    ["octavia", "error-expired-token", "nobody"],
    ["keystone", "projects-member-refused", "reader"],
    ["keystone", "projects-expired-token", "nobody"],
  ] as const) {
    test(`${service} ${name}`, async () => {
      const { real, fake } = await asked(service, name, account);
      expect(fake.status).toBe(real.status);
      expect(fake.body).toEqual(real.body);
    });
  }
});

test("neutron answers an unknown marker with the first page again", async () => {
  const { fake } = await asked("neutron", "floatingips-unknown-marker-not-refused", "collector");
  expect(fake.status).toBe(200);
  const first = firstOf(fake.body, "floatingips");
  const all = cloud.world.floatingIps.list();
  expect(first.id).toBe(all[0]?.id);
});

describe("an account of one project", () => {
  const own = [OWN_PROJECT.id];
  for (const [service, name, collection, owner] of [
    ["cinder", "volumes-detail-all-member-narrowed", "volumes", "os-vol-tenant-attr:tenant_id"],
    ["neutron", "floatingips-member-narrowed", "floatingips", "project_id"],
    ["octavia", "loadbalancers-member-narrowed", "loadbalancers", "project_id"],
  ] as const) {
    test(`is shown its own by ${service}, and no word of the rest`, async () => {
      const { fake } = await asked(service, name, "halfway");
      expect(fake.status).toBe(200);
      const items: unknown[] = Array.isArray(fake.body[collection]) ? fake.body[collection] : [];
      const owners = items.map((item) =>
        typeof item === "object" && item !== null ? Reflect.get(item, owner) : null,
      );
      expect([...new Set(owners)]).toEqual(own);
    });
  }
});
