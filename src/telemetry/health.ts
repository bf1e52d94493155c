/**
 * Is this process fit to serve? Ready: the database answers, takes writes, and has the schema of this binary.
 * Healthy: not ready, if so, for no longer than a threshold — restarting the process doesn't mend a database,
 * so health gives it time.
 */

/** What a probe found: null when all is well, else the reason in words, fit to be told. */
export type Finding = string | null;

export interface HealthOptions {
  /** Looks at the database. May reject or never answer. */
  readonly probe: () => Promise<Finding>;
  /** Unready for longer than this is unhealthy, in seconds. */
  readonly thresholdSeconds: number;
  /** A clock that only goes forward, in milliseconds: the wall clock may be set back. */
  readonly monotonicMs: () => number;
  /** Called with the first finding, and whenever it changes. */
  readonly changed?: (finding: Finding) => void;
  /** A finding is served for this long, in milliseconds. */
  readonly freshMs?: number;
  /** A probe that takes longer counts as failed, in milliseconds. */
  readonly timeoutMs?: number;
}

export interface Health {
  /** Whether it is ready; bounded by the probe's timeout, whatever the database does. */
  readiness(): Promise<Finding>;
  /** Whether it is healthy, from what the last probe found. */
  health(): Finding;
  /** Probes every `intervalMs` until the returned function is called, so that health needs no visitor. */
  watch(intervalMs: number): () => void;
}

const SILENT = "the database does not answer";

export function createHealth(options: HealthOptions): Health {
  const { probe, thresholdSeconds, monotonicMs, changed, freshMs = 1_000, timeoutMs = 2_500 } = options;
  let last: { finding: Finding; at: number } | null = null;
  let unreadySince: number | null = null;
  let running: Promise<Finding> | null = null;

  const settle = (finding: Finding): Finding => {
    if (last === null || last.finding !== finding) changed?.(finding);
    last = { finding, at: monotonicMs() };
    if (finding === null) unreadySince = null;
    else unreadySince ??= last.at;
    return finding;
  };

  /** One probe at a time: with a database that never answers, each further one would hold a connection more. */
  const probeOnce = (): Promise<Finding> => {
    running ??= (async () => {
      try {
        return settle(await probe());
      } catch {
        return settle("the database can't be reached");
      } finally {
        running = null;
      }
    })();
    return running;
  };

  const readiness = async (): Promise<Finding> => {
    if (last !== null && running === null && monotonicMs() - last.at < freshMs) return last.finding;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<typeof SILENT>((resolve) => {
      timer = setTimeout(() => resolve(SILENT), timeoutMs);
    });
    const answered = probeOnce().then((finding) => ({ finding }));
    const first = await Promise.race([answered, late]);
    clearTimeout(timer);
    return typeof first === "string" ? settle(first) : first.finding;
  };

  return {
    readiness,
    health() {
      if (unreadySince === null) return null;
      const seconds = (monotonicMs() - unreadySince) / 1_000;
      return seconds > thresholdSeconds
        ? `not ready for ${Math.floor(seconds)} seconds: ${last?.finding}`
        : null;
    },
    watch(intervalMs) {
      const timer = setInterval(() => void readiness(), intervalMs);
      timer.unref();
      void readiness();
      return () => clearInterval(timer);
    },
  };
}
