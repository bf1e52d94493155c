/** Collectors that send batches until their server goes away, and remember what was acknowledged. */

const BATCH = 50;
const CLIENTS = 4;

/** What became of the load. */
export interface Load {
  /** Ids of every event of a batch that was answered 200. */
  readonly acknowledged: string[];
  /** Settles when every client has met an end: a refused connection, a cut one, a status other than 200. */
  readonly over: Promise<void>;
}

function batch(client: number, number: number): { ids: string[]; body: string } {
  const items = Array.from({ length: BATCH }, (_, at) => ({
    event_id: `load-${client}-${number}-${at}`,
    timestamp: new Date(Date.UTC(2026, 2, 1, 0, 0, number, at)).toISOString(),
    event_type: "volume.create.end",
    platform: "openstack",
    cloud: "c1",
    resource_type: "volume",
    resource_id: `volume-${client}-${at}`,
    project_id: "p1",
    source: "collector",
    payload: { state: "active", size: { size_gb: 10, type: "ssd" } },
  }));
  return { ids: items.map((item) => item.event_id), body: JSON.stringify(items) };
}

async function client(url: string, token: string, number: number, acknowledged: string[]): Promise<void> {
  for (let sent = 0; ; sent++) {
    const { ids, body } = batch(number, sent);
    const answer = await fetch(`${url}/api/v1/events`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body,
    }).catch(() => null);
    if (answer?.status !== 200) return;
    // The whole answer counts: an acknowledgement that was cut off is none.
    const result: unknown = await answer.json().catch(() => null);
    if (result === null) return;
    if (!Bun.deepEquals(result, { accepted: BATCH, duplicates: 0, rejected: [] })) {
      throw new Error(`not what a new batch is answered: ${JSON.stringify(result)}`);
    }
    acknowledged.push(...ids);
  }
}

/** Starts it. */
export function startLoad(url: string, token: string): Load {
  const acknowledged: string[] = [];
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(url, token, number, acknowledged));
  return { acknowledged, over: Promise.all(clients).then(() => undefined) };
}
