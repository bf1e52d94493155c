/**
 * Runs every `sh` block of README.md, in order, as a reader would type them: `bun scripts/readme.ts`.
 *
 * The blocks share one shell: variables and the working directory carry over. A block is run as it stands unless
 * a comment right above it says otherwise, and none goes without a reason:
 *
 *   <!-- ci: ends after "text" -->           stays in the foreground: Ctrl-C once it has printed the text
 *   <!-- ci: stays after "text" -->          stays in the foreground of a second terminal: the rest goes on once
 *                                            it has printed the text; Ctrl-C after the last block
 *   <!-- ci: instead `command`, because why -->   what can be done here in its stead; it may stay, too:
 *   <!-- ci: instead `command`, which stays after "text", because why -->
 *   <!-- ci: elsewhere, because why -->      not run here
 *
 * A `json` block under `<!-- ci: the answer -->` must be part of what the block before it printed last.
 *
 * Prints one line a block, and in the end how many passed and failed. HOME is a directory of its own, and Tally listens
 * on a free port of its own wherever a block says 8080: two such runs on one machine don't meet.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** How to run a block. */
export interface Manner {
  /** What to run; null where the block is run elsewhere. */
  readonly command: string | null;
  /** Why that isn't the block itself; null where it is. */
  readonly why: string | null;
  /** It doesn't end by itself: what it prints when it is up, and what happens then. */
  readonly lasting: { readonly text: string; readonly stays: boolean } | null;
}

/** One block of the README. */
export interface Block {
  /** Of its opening fence, from 1. */
  readonly line: number;
  readonly command: string;
  readonly manner: Manner;
  /** What its last line of output must hold; absent where nothing is said of it. */
  readonly answer?: unknown;
}

const DIRECTIVE =
  /^(?:(?<until>ends|stays) after "(?<text>.+)"|instead `(?<command>.+)`(?:, which stays after "(?<stays>.+)")?, because (?<why>.+)|elsewhere, because (?<elsewhere>.+))$/;

/**
 * Reads the comment above a block.
 * @throws {Error} for a comment that is none of the known ones
 */
function readManner(comment: string, command: string, line: number): Manner {
  const text = /^<!-- ci: (.*) -->$/.exec(comment)?.[1];
  if (text === undefined) return { command, why: null, lasting: null };
  const found = DIRECTIVE.exec(text)?.groups;
  if (found === undefined) throw new Error(`line ${line}: nobody knows how to do "${text}"`);
  if (found.elsewhere !== undefined) return { command: null, why: found.elsewhere, lasting: null };
  if (found.text !== undefined) {
    return { command, why: null, lasting: { text: found.text, stays: found.until === "stays" } };
  }
  const lasting = found.stays === undefined ? null : { text: found.stays, stays: true };
  return { command: found.command ?? "", why: found.why ?? "", lasting };
}

/** The `sh` blocks of a Markdown text, with the answers that are told of. */
export function blocksOf(markdown: string): Block[] {
  const lines = markdown.split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\w+)$/.exec(lines[at] ?? "")?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf("```", at);
    if (end === -1) throw new Error(`line ${at + 1}: the block never ends`);
    const text = lines.slice(at + 1, end).join("\n");
    const above = lines[at - 1] ?? "";
    if (language === "sh") {
      blocks.push({ line: at + 1, command: text, manner: readManner(above, text, at) });
    } else if (above === "<!-- ci: the answer -->") {
      const asked = blocks.pop();
      if (asked === undefined) throw new Error(`line ${at + 1}: an answer to nothing`);
      blocks.push({ ...asked, answer: JSON.parse(text) });
    }
    at = end;
  }
  return blocks;
}

/** Whether `whole` has everything that `part` has; lists are compared whole. */
export function holds(whole: unknown, part: unknown): boolean {
  if (typeof part !== "object" || part === null) return whole === part;
  if (typeof whole !== "object" || whole === null || Array.isArray(whole) !== Array.isArray(part))
    return false;
  if (Array.isArray(part) && Array.isArray(whole) && whole.length !== part.length) return false;
  const members = new Map(Object.entries(whole));
  return Object.entries(part).every(([name, value]) => members.has(name) && holds(members.get(name), value));
}

/** Where the installed `tally` is, as long as nothing is installed. */
const DIST = fileURLToPath(new URL("../dist", import.meta.url));
/** The longest that one block may take, in milliseconds. */
const BLOCK_TIMEOUT_MS = 120_000;

/** A command that was started: its process group, what it printed so far, its exit code. */
interface Started {
  readonly process: Bun.Subprocess;
  readonly output: () => string;
  readonly drained: Promise<unknown>;
}

/** The port that the README speaks of: the default. */
const PORT = 8080;

/** A port that nobody listens on. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** The command as it is run where Tally listens on another port. */
export function onPort(command: string, port: number): string {
  return command.replaceAll(`127.0.0.1:${PORT}`, `127.0.0.1:${port}`);
}

/** This process's environment, but for Tally's settings; npm keeps its configuration and its cache. */
function environment(): Record<string, string | undefined> {
  const own = Object.entries(Bun.env).filter(([name]) => !/^(TALLY_|STATE_DIRECTORY$)/.test(name));
  return {
    npm_config_userconfig: join(homedir(), ".npmrc"),
    npm_config_cache: join(homedir(), ".npm"),
    ...Object.fromEntries(own),
  };
}

/** One reader's machine: a home, and the shell's state that blocks hand on. */
class Session {
  readonly #home: string;
  readonly #state: string;
  readonly #port: number;

  constructor(home: string, port: number) {
    this.#home = home;
    this.#port = port;
    this.#state = join(home, ".shell-state");
  }

  start(command: string): Started {
    // `set -a` exports what a block assigns, so that the next one's shell can take it up.
    const script = [
      "set -aeuo pipefail",
      '[ ! -f "$STATE" ] || . "$STATE"',
      onPort(command, this.#port),
      'export -p > "$STATE"; printf "cd %q\\n" "$PWD" >> "$STATE"',
    ].join("\n");
    const process = Bun.spawn(["setsid", "bash", "-c", script], {
      env: {
        ...environment(),
        TALLY_REPORTING_HTTP_PORT: String(this.#port),
        PATH: `${DIST}:${Bun.env.PATH ?? "/usr/bin:/bin"}`,
        HOME: this.#home,
        STATE: this.#state,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    let output = "";
    const collect = async (stream: ReadableStream<Uint8Array>) => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) output += decoder.decode(chunk, { stream: true });
    };
    const drained = Promise.all([collect(process.stdout), collect(process.stderr)]);
    return { process, output: () => output, drained };
  }
}

/** Signals a command and all it started. */
function signal(started: Started, name: "SIGINT" | "SIGKILL"): void {
  try {
    process.kill(-started.process.pid, name);
  } catch (error) {
    // It may have ended in between.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/**
 * Waits for the end of a command.
 * @param interrupted Ctrl-C was pressed: npm and shells then end as told by a signal, whatever their command made of it
 * @returns what went wrong, or null.
 */
async function ended(started: Started, interrupted = false): Promise<string | null> {
  const timer = setTimeout(() => signal(started, "SIGKILL"), BLOCK_TIMEOUT_MS);
  const code = await started.process.exited;
  clearTimeout(timer);
  await Promise.race([started.drained, Bun.sleep(1_000)]);
  if (interrupted && started.process.signalCode === "SIGINT") return null;
  if (started.process.signalCode !== null) return `was ended by ${started.process.signalCode}`;
  return code === 0 ? null : `exit code ${code}`;
}

/** Waits until a command has printed the text. @returns what went wrong, or null. */
async function printed(started: Started, text: string): Promise<string | null> {
  const deadline = performance.now() + BLOCK_TIMEOUT_MS;
  while (!started.output().includes(text)) {
    if (started.process.exitCode !== null) return `ended without printing "${text}"`;
    if (performance.now() > deadline) {
      signal(started, "SIGKILL");
      return `did not print "${text}" within ${BLOCK_TIMEOUT_MS / 1_000} s`;
    }
    await Bun.sleep(50);
  }
  return null;
}

/** @returns what an answer lacks of what the README says of it, or null. */
function unanswered(block: Block, started: Started): string | null {
  if (block.answer === undefined) return null;
  const last = started.output().trimEnd().split("\n").at(-1) ?? "";
  try {
    return holds(JSON.parse(last), block.answer) ? null : `the answer is not what the README says`;
  } catch {
    return "the answer is no JSON";
  }
}

function firstLine({ command }: Block): string {
  return command.split("\n")[0] ?? "";
}

async function main(): Promise<number> {
  const readme = await Bun.file(new URL("../README.md", import.meta.url)).text();
  const home = await mkdtemp(join(tmpdir(), "tally-readme-"));
  // The embedded server runs as another user when this is root: it has to get through here.
  await chmod(home, 0o755);
  const session = new Session(home, freePort());
  const background: { block: Block; started: Started; remark: string }[] = [];
  let passed = 0;
  let failed = 0;
  const tell = (block: Block, fault: string | null, started: Started, remark: string): void => {
    if (fault === null) passed++;
    else failed++;
    console.log(
      `${fault === null ? "(pass)" : "(fail)"} README.md:${block.line} ${firstLine(block)}${remark}`,
    );
    if (fault !== null) console.log(`${fault}\n${started.output()}`);
  };

  for (const block of blocksOf(readme)) {
    const { command, why, lasting } = block.manner;
    if (command === null) {
      console.log(`(elsewhere) README.md:${block.line} ${firstLine(block)}: ${why}`);
      continue;
    }
    const remark = why === null ? "" : ` — as ${command}, because ${why}`;
    const started = session.start(command);
    if (lasting === null) {
      tell(block, (await ended(started)) ?? unanswered(block, started), started, remark);
      continue;
    }
    const fault = await printed(started, lasting.text);
    if (fault === null && lasting.stays) {
      background.push({ block, started, remark });
      continue;
    }
    signal(started, "SIGINT");
    tell(block, fault ?? (await ended(started, true)), started, remark);
  }
  for (const { block, started, remark } of background.reverse()) {
    signal(started, "SIGINT");
    tell(block, await ended(started, true), started, remark);
  }
  await rm(home, { recursive: true, force: true });
  console.log(`\n ${passed} pass\n ${failed} fail`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

if (import.meta.main) process.exit(await main());
