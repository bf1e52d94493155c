/** The way through a fresh Tally, as a collector and an administrator go it: over HTTP, with their tokens. */
import type { Style } from "../commands/table.ts";
import type { Instant } from "../event/instant.ts";
import { ask, Ingested, Inventory, Life } from "./answers.ts";
import { type Access, curlLines, ingestTable, inventoryTable, lifeReport } from "./report.ts";
import { SAMPLE_CLOUD, SAMPLE_EVENTS, SAMPLE_PROJECTS, TELLING_LIVES, type TellingLife } from "./sample.ts";

async function post(access: Access, events: readonly string[]): Promise<Ingested> {
  return await ask(Ingested, `${access.url}/api/v1/events`, access.ingestToken, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `[${events.join(",")}]`,
  });
}

async function lifeOf(access: Access, { resourceType, resourceId }: TellingLife): Promise<Life> {
  const path = [SAMPLE_CLOUD, resourceType, resourceId].map(encodeURIComponent).join("/");
  return await ask(Life, `${access.url}/api/v1/resources/${path}/lifecycle`, access.adminToken);
}

/**
 * Walks through, printing as it goes.
 * @param now when open intervals are told to have lasted until
 * @throws {DemoFailed} when an answer is not what it should be
 */
export async function tour(
  access: Access,
  now: Instant,
  style: Style,
  print: (text: string) => void,
): Promise<void> {
  const heading = (text: string) => print(`\n${style.bold(text)}\n`);

  heading(`Five weeks of a small OpenStack cloud: ${SAMPLE_EVENTS.length} events`);
  const first = { what: "the recording", result: await post(access, SAMPLE_EVENTS) };
  const again = { what: "the same again", result: await post(access, SAMPLE_EVENTS) };
  print(ingestTable([first, again], style));
  print("A collector that isn't sure whether a batch arrived just sends it again.");

  heading("What the cloud holds by now, the deleted included");
  const { items } = await ask(
    Inventory,
    `${access.url}/api/v1/resources?status=all&limit=1000`,
    access.adminToken,
  );
  print(inventoryTable(items, style));

  heading("What a bill is made of: the intervals over which nothing billable changed");
  for (const [at, telling] of TELLING_LIVES.entries()) {
    if (at > 0) print("");
    print(lifeReport(telling, await lifeOf(access, telling), SAMPLE_PROJECTS, now, style));
  }
}

/** What to try next, as commands to copy. @param internalToken what reconciliation runs are asked for with */
export function invitation(access: Access, internalToken: string, style: Style): string {
  const [event = ""] = SAMPLE_EVENTS;
  const [telling] = TELLING_LIVES;
  const lines = telling === undefined ? [] : curlLines(access, internalToken, event, telling);
  return [
    `\n${style.bold("Now you")}\n`,
    `The API, to read and to try:  ${access.url}/docs`,
    `An administrator's token:     ${access.adminToken}`,
    `A collector's token:          ${access.ingestToken}`,
    ...lines.map(({ what, line }) => `\n${style.dim(`# ${what}`)}\n${line}`),
  ].join("\n");
}
