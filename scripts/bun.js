// Runs the Bun that npm installed: `node scripts/bun.js test`. The package `bun` puts its command in place by an
// install script, and npm may be told to run none; the binary is there all the same, in a package of its own.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const cpu = process.arch === "arm64" ? "aarch64" : process.arch;
const binary = `@oven/bun-${process.platform}-${cpu}`;
const bun = [`${binary}/bin/bun`, `${binary}-musl/bin/bun`, "bun/bin/bun.exe"]
  .map((path) => fileURLToPath(new URL(`../node_modules/${path}`, import.meta.url)))
  .find((path) => existsSync(path));
if (bun === undefined) {
  console.error("Bun is not installed: run npm ci");
  process.exit(1);
}
const child = spawn(bun, process.argv.slice(2), {
  stdio: "inherit",
  // Whatever it starts by name finds the same one.
  env: { ...process.env, PATH: `${dirname(bun)}${delimiter}${process.env.PATH ?? ""}` },
});
// A terminal's Ctrl-C reaches the child by itself: wait for what it makes of it.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (error) => {
  console.error(`${bun} can't be run: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? "SIGKILL"]));
