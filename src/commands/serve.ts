/** tally serve */
import type { Command } from "commander";
import { readSettings } from "../settings.ts";
import { createLogger } from "../telemetry/log.ts";
import { configuredClouds } from "./configured-clouds.ts";
import { type Instance, startInstance } from "./instance.ts";

export function registerServe(program: Command): void {
  program
    .command("serve")
    .description(
      "serve the API until SIGTERM or SIGINT, with the embedded PostgreSQL unless a URL names another",
    )
    .addHelpText(
      "after",
      "\nEverything is set by environment variables: tally config lists them, with what is in force here. The embedded\ndatabase is in TALLY_DATA_DIR.",
    )
    .action(async () => {
      const settings = readSettings(process.env);
      const clouds = configuredClouds(settings, process.env);
      const log = createLogger(settings.logLevel);
      const told = new AbortController();
      const signalled = new Promise<string>((resolve) => {
        for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
          process.on(signal, () => {
            // The second one doesn't wait. The embedded server still ends cleanly: it is told by the kernel.
            if (told.signal.aborted) process.exit(1);
            told.abort();
            resolve(signal);
          });
        }
      });
      if (settings.auth.mode === "disabled") {
        log.warn(
          "TALLY_REPORTING_AUTH_MODE=disabled: everybody on this machine may read and write everything",
        );
      }
      let instance: Instance;
      try {
        instance = await startInstance(settings, log, told.signal, clouds);
      } catch (error) {
        // Told to stop before it was up: that is no failure.
        if (told.signal.aborted) return;
        throw error;
      }
      const { listening, failed } = instance;
      log.info(`listening on ${listening.url}`, {
        host: listening.host,
        port: listening.port,
        database: settings.database.url === null ? `embedded in ${settings.dataDir}` : "external",
      });
      // Whoever takes any free port has to be told which one it is, however little is logged.
      if (settings.http.port === 0) console.error(`tally listens on ${listening.url}`);
      const why = await Promise.race([signalled, failed.then(() => null)]);
      if (why === null)
        log.error("the embedded PostgreSQL ended by itself; its last words are in postgres.log");
      else log.info(`${why}: stopping`);
      await instance.stop();
      log.info("stopped");
      // What a cut-off handler left pending must not keep the process.
      process.exit(why === null ? 1 : 0);
    });
}
