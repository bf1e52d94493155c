/** A Tally beside a fake cloud: what a run over it does, and what is there afterwards. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareWithTruth } from "../../../scripts/fake-openstack/compare.ts";
import { heal } from "../../../scripts/fake-openstack/control.ts";
import type { AccountName, FakeCloud, FakeCloudOptions } from "../../../scripts/fake-openstack/fake-cloud.ts";
import { startFakeCloud } from "../../../scripts/fake-openstack/fake-cloud.ts";
import { instant, later } from "../../../scripts/fake-openstack/furnishing.ts";
import type { ConfiguredCloud } from "../../../src/reconcile/adapter.ts";
import { openStackAdapter } from "../../../src/reconcile/openstack/adapter.ts";
import type { SyncOutcome } from "../../../src/reconcile/outcome.ts";
import type { RunRequest, RunServices } from "../../../src/reconcile/request.ts";
import { runSync } from "../../../src/reconcile/run.ts";
import type { SyncSettings } from "../../../src/settings.ts";
import { type TestDatabase, testDatabase } from "../../support/database.ts";
import { runServices } from "../runs.ts";

/** The cloud's name in every test of this room. */
export const CLOUD = "fake-1";
/** What a scene's clocks say at first. */
export const START = instant("2026-11-01T00:00:00Z");

/** How a scene is set. */
export interface SceneOptions extends Partial<Omit<FakeCloudOptions, "cloud" | "port">> {
  readonly account?: AccountName;
  readonly sync?: Partial<SyncSettings>;
  /** Milliseconds before a request is tried again; three times as long before each further try. */
  readonly firstWaitMs?: number;
}

/** The types that a fake cloud has, in the alphabet's order. */
export const TYPES = ["floating_ip", "image", "instance", "loadbalancer", "volume"] as const;

/** A scene. */
export interface Scene {
  readonly cloud: FakeCloud;
  readonly db: TestDatabase;
  readonly services: RunServices;
  readonly configured: ConfiguredCloud;
  /** From now on Tally logs in with this account. */
  useAccount(account: AccountName): void;
  /** A run at the cloud's own time, unless the request names another. */
  run(request?: RunRequest, signal?: AbortSignal): Promise<SyncOutcome>;
  /** Of each type, one resource comes, one changes and one goes, and nobody tells. Three minutes pass. */
  stir(): void;
  /** Rows that say something else than is true, a line each. */
  untrue(): Promise<readonly string[]>;
  /** Living rows of each type that has some. */
  living(): Promise<Record<string, number>>;
  /** All is well again in the cloud, and ten minutes have passed. */
  heal(): void;
  stop(): Promise<void>;
}

/** The types that a run booked deletes of. */
export function typesDeleted(outcome: SyncOutcome): string[] {
  const deletes = outcome.corrections.filter(({ action }) => action === "delete");
  return [...new Set(deletes.map(({ resourceType }) => resourceType))].sort();
}

/** Starts a cloud of a few resources that stands still, with small pages, and a Tally that knows nothing of it. */
export async function startScene(options: SceneOptions = {}): Promise<Scene> {
  const { account, sync, firstWaitMs = 1, ...others } = options;
  const directory = mkdtempSync(join(tmpdir(), "tally-scene-"));
  const db = await testDatabase();
  const cloud = startFakeCloud({
    seed: 1,
    resources: 100,
    changesPerDay: 0,
    start: START,
    cloud: CLOUD,
    ...others,
  });
  const yaml = join(directory, "clouds.yaml");
  const useAccount = (name: AccountName) => writeFileSync(yaml, cloud.cloudsYaml(CLOUD, name));
  useAccount(account ?? "collector");
  const services = runServices(db.db, sync);
  const configured: ConfiguredCloud = {
    cloud: CLOUD,
    platform: "openstack",
    intervalSeconds: 0,
    adapter: openStackAdapter(
      { osCloud: CLOUD, includeOctavia: true },
      { HOME: directory, OS_CLIENT_CONFIG_FILE: yaml },
      { timeoutMs: 10_000, firstWaitMs },
    ),
  };
  return {
    cloud,
    db,
    services,
    configured,
    useAccount,
    run: (request = {}, signal = new AbortController().signal) =>
      runSync(services, configured, { at: cloud.world.now, ...request }, signal),
    stir() {
      for (const type of TYPES) {
        for (const deed of ["create", "change", "delete"] as const) cloud.living.happen(deed, type);
      }
      cloud.living.settle();
    },
    heal() {
      heal(cloud);
      cloud.meanwhile = () => {};
      cloud.services.absent.clear();
      cloud.living.advance(later(cloud.world.now, 600));
    },
    untrue: async () => (await compareWithTruth(db.db, CLOUD, cloud.living.lives, cloud.world.now)).wrong,
    async living() {
      const found: { type: string; count: number }[] = await db.db`
        SELECT resource_type AS type, count(*)::int AS count FROM current_resources
         WHERE cloud = ${CLOUD} AND deleted_at IS NULL GROUP BY resource_type ORDER BY resource_type`;
      return Object.fromEntries(found.map(({ type, count }) => [type, count]));
    },
    async stop() {
      await cloud.stop();
      await db.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
