/** A Tally beside a fake cloud: what a run over it does, and what is there afterwards. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AccountName, FakeCloud, FakeCloudOptions } from "../../../scripts/fake-openstack/fake-cloud.ts";
import { startFakeCloud } from "../../../scripts/fake-openstack/fake-cloud.ts";
import { instant } from "../../../scripts/fake-openstack/furnishing.ts";
import type { ConfiguredCloud } from "../../../src/reconcile/adapter.ts";
import { openStackAdapter } from "../../../src/reconcile/openstack/adapter.ts";
import { type RunRequest, type RunServices, runSync, type SyncOutcome } from "../../../src/reconcile/run.ts";
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
  /** Living rows of each type that has some. */
  living(): Promise<Record<string, number>>;
  stop(): Promise<void>;
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
