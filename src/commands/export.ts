/** tally export [file] */
import { existsSync, writeSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { readSettings } from "../settings.ts";
import { compressed } from "../transfer/compression.ts";
import { type Exported, exportAll } from "../transfer/export.ts";
import { withExistingDatabase } from "./database.ts";
import { transferBar } from "./transfer-bar.ts";
import { VERSION } from "./version.ts";

const STDOUT = 1;
/** A pipe that is full is tried again after so long. */
const FULL_PIPE_MS = 5;

export function registerExport(program: Command): void {
  program
    .command("export")
    .description(
      "write everything that can't be derived as one stream (NDJSON, zstd), as of one moment, while events keep coming in",
    )
    .argument("[file]", "a file that isn't there yet; without one, the stream goes to stdout")
    .action(async (file: string | undefined) => {
      const settings = readSettings(process.env);
      if (file === undefined && process.stdout.isTTY === true)
        throw new Error("the stream is no text: name a file, or send stdout to one or to tally import");
      if (file !== undefined && existsSync(file)) throw new Error(`${file} is there already`);
      const bar = transferBar("exporting", "rows");
      const begun = performance.now();
      const { tables } = await withExistingDatabase(settings, async (db) => {
        try {
          const run = (write: Write): Promise<Exported> =>
            exportAll(db, VERSION, (parts) => write(compressed(parts)), bar);
          return file === undefined ? await run(toStdout) : await toFile(resolve(file), run);
        } finally {
          bar.stop();
        }
      });
      const rows = [...tables.values()].reduce((sum, table) => sum + table.rows, 0);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      console.error(
        `${rows} rows exported, ${tables.get("events")?.rows ?? 0} of them events, in ${seconds} s`,
      );
    });
}

type Write = (bytes: AsyncIterable<Uint8Array>) => Promise<void>;

/** The file has its name when all of it is on the disk, and not before. Only its owner may read it. */
async function toFile(file: string, run: (write: Write) => Promise<Exported>): Promise<Exported> {
  const half = `${file}.${process.pid}.part`;
  const handle = await open(half, "wx", 0o600);
  try {
    const exported = await run(async (bytes) => {
      for await (const part of bytes) await handle.writeFile(part);
    });
    await handle.sync();
    await handle.close();
    await rename(half, file);
    const directory = await open(dirname(file), "r");
    await directory.sync();
    await directory.close();
    return exported;
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(half, { force: true });
    throw error;
  }
}

async function toStdout(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const part of bytes) {
    for (let at = 0; at < part.length; ) at += await writeSome(part, at);
  }
}

/** As much as the pipe takes, so that a slow reader slows the export down. */
async function writeSome(part: Uint8Array, from: number): Promise<number> {
  try {
    return writeSync(STDOUT, part, from);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "EPIPE") throw new Error("whoever was to read the stream has gone", { cause: error });
    if (code !== "EAGAIN") throw error;
    await Bun.sleep(FULL_PIPE_MS);
    return 0;
  }
}
