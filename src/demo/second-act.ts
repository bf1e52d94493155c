/** What becomes of a cloud that nobody tells of: its collector is down, and a reconciliation run finds what it missed. */
import { renderTable, type Style } from "../commands/table.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import { ask, Life, SyncResult } from "./answers.ts";
import type { World } from "./openstack/world.ts";
import { flavorOf, instantOf } from "./recorded-cloud.ts";
import { type Access, intervalTable, shortId, shortInstant } from "./report.ts";
import { SAMPLE_CLOUD, SAMPLE_PROJECTS } from "./sample.ts";

/** The recording is over, and all is quiet. */
export const QUIET = instantOf("2026-12-02T00:00:00Z");
/** The run that finds what was missed. */
const FOUND = instantOf("2026-12-02T07:00:00Z");
const LATER = instantOf("2026-12-02T07:10:00Z");

const RESIZED = "9555b446-a7bf-43d7-aa83-4adba8593846";
const ENDED = "a26b8d8e-83c8-427d-82e5-6bab0cd69114";
const GROWN = "5b711d88-5fee-44c0-89c2-5937294169b3";
const RELEASED = "74d81ba5-ba03-42fa-93cb-7f6f7cefc0e5";
const BORN = "0d5c2a7e-41f3-4c52-8a54-1f5e0a4b9c10";

/** What happens in the cloud, and is not told. */
const MISSED: readonly {
  readonly at: string;
  readonly what: string;
  readonly happen: (world: World, at: Instant) => void;
}[] = [
  {
    at: "2026-12-02T06:10:00Z",
    what: `server ${shortId(RESIZED)} gets a larger flavor`,
    happen(world, at) {
      const server = world.servers.get(RESIZED);
      const flavor = flavorOf("m1.medium", 2, 4, 40);
      if (server !== undefined) world.servers.set({ ...server, flavor, updatedAt: at });
    },
  },
  {
    at: "2026-12-02T06:20:00Z",
    what: `volume ${shortId(GROWN)} grows from 7 to 20 GB`,
    happen(world, at) {
      const volume = world.volumes.get(GROWN);
      if (volume !== undefined) world.volumes.set({ ...volume, sizeGb: 20, updatedAt: at });
    },
  },
  {
    at: "2026-12-02T06:30:00Z",
    what: `server ${shortId(BORN)} is created`,
    happen(world, at) {
      const [projectId = ""] = SAMPLE_PROJECTS.keys();
      const times = { createdAt: at, updatedAt: at, launchedAt: at, terminatedAt: null };
      const owner = { projectId, userId: projectId };
      const state = { vmState: "active", taskState: null, host: "node-2" };
      const flavor = flavorOf("m1.tiny", 1, 0.5, 1);
      world.servers.set({ id: BORN, name: "untold", flavor, ...owner, ...state, ...times });
    },
  },
  {
    at: "2026-12-02T06:40:00Z",
    what: `server ${shortId(ENDED)} is deleted`,
    happen(world, at) {
      const server = world.servers.get(ENDED);
      const end = { vmState: "deleted", updatedAt: at, terminatedAt: at };
      if (server !== undefined) world.servers.set({ ...server, ...end });
    },
  },
  {
    at: "2026-12-02T06:50:00Z",
    what: `floating IP ${shortId(RELEASED)} is released`,
    happen: (world) => world.floatingIps.delete(RELEASED),
  },
];

/** Where the second act's requests go. */
export interface Backstage {
  readonly access: Access;
  readonly internalToken: string;
  readonly world: World;
}

async function sync({ access, internalToken, world }: Backstage, at: Instant, dryRun: boolean) {
  world.now = at;
  return await ask(SyncResult, `${access.url}/internal/sync/${SAMPLE_CLOUD}`, internalToken, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ at: formatInstant(at), dry_run: dryRun }),
  });
}

function correctionTable(corrections: NonNullable<SyncResult["corrections"]>, style: Style): string {
  return renderTable(
    ["Booked as", "Type", "Resource", "Because", "Dated"],
    corrections.map(({ event_type, resource_type, resource_id, reason, timestamp }) => [
      event_type,
      resource_type,
      shortId(resource_id),
      reason,
      shortInstant(timestamp),
    ]),
    style,
  );
}

/**
 * Plays it, printing as it goes. The clock is the cloud's: every time that is said is the same on every day.
 * @throws {DemoFailed} when an answer is not what it should be
 */
export async function secondAct(
  backstage: Backstage,
  style: Style,
  print: (text: string) => void,
): Promise<void> {
  const { access, world } = backstage;
  const heading = (text: string) => print(`\n${style.bold(text)}\n`);

  heading("Second act: the collector is down, and nobody tells Tally");
  const names = await sync(backstage, QUIET, false);
  print(
    `A first reconciliation run asked the cloud itself what it holds. It learnt the names of the volume types, which the\n` +
      `message bus only knows by id, and corrected ${names.stats.updated} volumes by them: all else was as recorded.\n`,
  );
  print("Then, in the early morning, in the cloud:");
  for (const { at, what, happen } of MISSED) {
    happen(world, instantOf(at));
    print(`  ${shortInstant(at)}  ${what}`);
  }

  heading("What the next run finds");
  const found = await sync(backstage, FOUND, true);
  print(correctionTable(found.corrections ?? [], style));
  print(
    `What the cloud dates is dated so; what it doesn't is dated by the run, at ${shortInstant(formatInstant(FOUND))}.`,
  );
  const { stats } = await sync(backstage, FOUND, false);
  const again = await sync(backstage, LATER, false);
  print(
    `Booked: ${stats.created} created, ${stats.updated} updated, ${stats.deleted} deleted. ` +
      `The run ten minutes later: ${again.stats.created}, ${again.stats.updated} and ${again.stats.deleted}.`,
  );

  heading("The server that got a larger flavor, as it is billed");
  const path = [SAMPLE_CLOUD, "instance", RESIZED].map(encodeURIComponent).join("/");
  const life = await ask(Life, `${access.url}/api/v1/resources/${path}/lifecycle`, access.adminToken);
  print(intervalTable(life, SAMPLE_PROJECTS, LATER, style));
}
