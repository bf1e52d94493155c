/** The plain client that reads are measured against: psql, on the same server, in the same run. */
import type { Session } from "./session.ts";

/** psql's version; null where there is none. */
export async function psqlVersion(): Promise<string | null> {
  if (Bun.which("psql") === null) return null;
  return (await new Response(Bun.spawn(["psql", "--version"]).stdout).text()).trim();
}

/**
 * Runs the statements one after the other, `times` times over, on one connection, each planned for its values.
 * @returns milliseconds of all statements together, as psql times them: sent, run, and fetched whole.
 */
export async function timeByPsql(
  session: Session,
  statements: readonly string[],
  times: number,
): Promise<number[]> {
  const child = Bun.spawn(
    [
      "psql",
      "-X",
      "-q",
      "-A",
      "-t",
      "-v",
      "ON_ERROR_STOP=1",
      "-h",
      session.socketDirectory,
      "-U",
      "tally",
      "tally",
    ],
    { stdin: "pipe", stdout: "pipe", stderr: "pipe" },
  );
  const once = statements.map((statement) => `${statement.trim()};\n`).join("");
  child.stdin.write(`\\timing on\n\\o /dev/null\n${once.repeat(times)}`);
  await child.stdin.end();
  const [out, said] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`psql failed: ${said}`);
  const each = [...out.matchAll(/^Time: ([\d.]+) ms/gm)].map((match) => Number(match[1]));
  if (each.length !== statements.length * times)
    throw new Error(`psql timed ${each.length} statements: ${out}`);
  return Array.from({ length: times }, (_, n) =>
    each.slice(n * statements.length, (n + 1) * statements.length).reduce((sum, ms) => sum + ms, 0),
  );
}
