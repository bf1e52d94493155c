/**
 * Compiled clients that time themselves: curl for what Tally answers, psql for the statements behind it, on the same
 * server in the same run.
 */
import { inBytes, PAGE_TEXT } from "../../src/database/object-text.ts";
import { linesOf } from "./contract.ts";
import type { Session } from "./session.ts";

/** Their versions, in a line. @throws Error where one isn't there */
export async function clientVersions(): Promise<string> {
  const lacking = ["curl", "psql", "stdbuf"].find((name) => Bun.which(name) === null);
  if (lacking !== undefined)
    throw new Error(`${lacking} isn't there: the packages curl, postgresql-client and coreutils have them`);
  const [curl = "", psql = ""] = await Promise.all(
    ["curl", "psql"].map((name) => Bun.spawn([name, "--version"]).stdout.text()),
  );
  return `${curl.split(" ", 2).join(" ")}, ${psql.trim()}`;
}

/**
 * Reads an URL `times` times over, on one kept-alive connection.
 * @returns milliseconds of each read, as curl times them: from the request until the whole body is there.
 */
export async function timeByCurl(url: string, token: string, times: number): Promise<number[]> {
  // The first one connects, and doesn't count.
  const reads = Array.from({ length: times + 1 }, () => ["-o", "/dev/null", url]).flat();
  const said = "%{http_code} %{num_connects} %{time_total}\\n";
  const child = Bun.spawn(["curl", "-sS", "-H", `authorization: Bearer ${token}`, "-w", said, ...reads], {
    stderr: "pipe",
  });
  const [out, fault] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const each = out
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.split(" "));
  if (each.length !== times || each.some(([status, connects]) => status !== "200" || connects !== "0"))
    throw new Error(`${url}: ${fault || out}`);
  return each.map(([, , seconds]) => Number(seconds) * 1_000);
}

/** A running psql with one connection. */
export class PlainClient {
  readonly #child;
  readonly #said: AsyncIterator<string>;
  #asked = 0;

  constructor(session: Session) {
    // Line by line, as psql writes to a terminal: into a pipe it would write when a buffer is full.
    const psql = ["stdbuf", "-oL", "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"];
    this.#child = Bun.spawn([...psql, "-h", session.socketDirectory, "-U", "tally", "tally"], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#said = linesOf(this.#child.stdout);
    this.#child.stdin.write("\\timing on\n");
  }

  /**
   * Runs the statements one after the other, `times` times over, each planned for its values. A page comes as text: psql
   * would be sent twice as many digits for its bytes, which takes it longer.
   * @returns milliseconds of all statements together, as psql times them: sent, run, and fetched whole.
   */
  async time(statements: readonly string[], times: number): Promise<number[]> {
    const once = statements.map((statement) => `${asText(statement)};\n`).join("");
    const end = `asked ${++this.#asked}`;
    this.#child.stdin.write(`\\o /dev/null\n${once.repeat(times)}\\o\n\\echo ${end}\n`);
    await this.#child.stdin.flush();
    const each: number[] = [];
    for (;;) {
      const line = await this.#said.next();
      if (line.done) throw new Error(`psql failed: ${await this.#child.stderr.text()}`);
      if (line.value === end) break;
      const ms = /^Time: ([\d.]+) ms/.exec(line.value)?.[1];
      if (ms !== undefined) each.push(Number(ms));
    }
    if (each.length !== statements.length * times) throw new Error(`psql timed ${each.length} statements`);
    return Array.from({ length: times }, (_, n) =>
      each.slice(n * statements.length, (n + 1) * statements.length).reduce((sum, ms) => sum + ms, 0),
    );
  }

  async close(): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** @throws Error where bytes are left, which would slow psql down */
function asText(statement: string): string {
  const text = statement.replace(inBytes(PAGE_TEXT), PAGE_TEXT).trim();
  if (text.includes("convert_to(")) throw new Error(`not a page as it was known: ${text}`);
  return text;
}
