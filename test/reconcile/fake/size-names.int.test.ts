/** A volume's type: an id on the bus, a name in the API, and a name in the record once a run has learnt it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { later, VOLUME_TYPES } from "../../../scripts/fake-openstack/furnishing.ts";
import { formatInstant } from "../../../src/event/instant.ts";
import { type TestServer, testServer } from "../../support/server.ts";
import { CLOUD, type Scene, START, startScene } from "./scene.ts";

/** What is looked at of a lifecycle. */
const Served = Type.Object({
  intervals: Type.Array(Type.Object({ size: Type.Unknown() })),
  events: Type.Array(Type.Object({ payload: Type.Object({ provider: Type.Unknown() }) })),
});

const SSD = VOLUME_TYPES[0];
const VOLUME = "8c4bb727-7016-4294-9964-bbe843d356f1";
const CREATED = later(START, -7_200);

let scene: Scene;
let server: TestServer;
let token: string;

beforeAll(async () => {
  scene = await startScene({ resources: 0 });
  server = await testServer({ db: scene.db, clouds: [scene.configured] });
  token = await server.credentials.ingest("openstack", CLOUD);
  scene.cloud.world.volumes.set({
    id: VOLUME,
    name: "data",
    projectId: "shop",
    userId: "somebody",
    status: "available",
    sizeGb: 10,
    type: SSD,
    attachedTo: null,
    createdAt: CREATED,
    updatedAt: CREATED,
  });
}, 60_000);

afterAll(async () => {
  await server.stop();
  await scene.stop();
});

async function tell(eventType: string, at: bigint, sizeGb: number): Promise<void> {
  const event = {
    event_id: `${eventType} ${at}`,
    timestamp: formatInstant(later(START, Number(at - START) / 1e6)),
    event_type: eventType,
    platform: "openstack",
    cloud: CLOUD,
    resource_type: "volume",
    resource_id: VOLUME,
    project_id: "shop",
    payload: { state: "available", size: { size_gb: sizeGb, type: SSD.id }, provider: { name: "data" } },
  };
  const answer = await server.request("/api/v1/events", {
    method: "POST",
    token,
    body: JSON.stringify(event),
  });
  expect(await answer.json()).toEqual({ accepted: 1, duplicates: 0, rejected: [] });
}

async function served(): Promise<{ sizes: unknown[]; providers: unknown[] }> {
  const path = `/api/v1/resources/${CLOUD}/volume/${VOLUME}/lifecycle`;
  const answer = await server.request(path, { token: server.credentials.admin });
  const { intervals, events } = Value.Parse(Served, await answer.json());
  return {
    sizes: intervals.map(({ size }) => size),
    providers: events.map(({ payload }) => payload.provider),
  };
}

test("before the first run the id stays", async () => {
  await tell("volume.create.end", CREATED, 10);
  expect((await served()).sizes).toEqual([{ size_gb: 10, type: SSD.id }]);
});

test("the first run learns the names, and corrects the volume", async () => {
  const outcome = await scene.run();
  expect(outcome.status).toBe("completed");
  expect(outcome.corrections).toMatchObject([
    { action: "update", resourceType: "volume", resourceId: VOLUME },
  ]);
  expect((await served()).sizes).toEqual([
    { size_gb: 10, type: SSD.id },
    { size_gb: 10, type: "ssd" },
  ]);
});

test("from then on an event with the id is stored and served under the name, and keeps the id beside it", async () => {
  scene.heal();
  const at = later(scene.cloud.world.now, -300);
  const volume = scene.cloud.world.volumes.get(VOLUME);
  if (volume === undefined) throw new Error("the volume is gone");
  scene.cloud.world.volumes.set({ ...volume, sizeGb: 15, updatedAt: at });
  await tell("volume.resize.end", at, 15);
  const { sizes, providers } = await served();
  expect(sizes.at(-1)).toEqual({ size_gb: 15, type: "ssd" });
  expect(providers.at(-1)).toEqual({ name: "data", size_as_reported: { type: SSD.id } });
});

test("the next run finds nothing to correct", async () => {
  const outcome = await scene.run();
  expect(outcome.status).toBe("completed");
  expect(outcome.corrections).toEqual([]);
});

test("a type that is renamed is known by its new name from the next run on", async () => {
  scene.heal();
  const { world } = scene.cloud;
  const renamed = { ...SSD, name: "fast" };
  const volume = world.volumes.get(VOLUME);
  if (volume === undefined) throw new Error("the volume is gone");
  world.volumeTypes.set(renamed);
  world.volumes.set({ ...volume, type: renamed });
  const outcome = await scene.run();
  expect(outcome.corrections).toMatchObject([{ action: "update" }]);
  expect((await served()).sizes.at(-1)).toEqual({ size_gb: 15, type: "fast" });
});
