/** tally health: for containers, whose images have no curl. */

import type { Command } from "commander";
import { readSettings } from "../settings.ts";
import { print } from "./print.ts";

const TIMEOUT_MS = 5_000;
/** Where to find a server that listens on every address. */
const LOOPBACK: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

export function registerHealth(program: Command): void {
  program
    .command("health")
    .description("ask the Tally that runs with these settings whether it is healthy; exits 1 when it isn't")
    .option("--ready", "ask whether it is ready instead")
    .action(async (options: { ready?: boolean }) => {
      const { host, port } = readSettings(process.env).http;
      if (port === 0) throw new Error("TALLY_REPORTING_HTTP_PORT=0: there is no telling which port it got");
      const address = LOOPBACK[host] ?? host;
      const path = options.ready === true ? "/readyz" : "/healthz";
      const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}${path}`;
      let answer: Response;
      try {
        answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: "manual" });
      } catch (error) {
        throw new Error(`${url} doesn't answer`, { cause: error });
      }
      const text = (await answer.text()).trim();
      if (!answer.ok) throw new Error(`${url} answers ${answer.status}: ${text}`);
      print(text);
    });
}
