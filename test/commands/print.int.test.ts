/** Results on stdout: whole, or the command fails. */
import { expect, setDefaultTimeout, test } from "bun:test";

// Every command is a process of its own, and the machine may be busy.
setDefaultTimeout(60_000);

/** Runs `tally` in a shell's pipeline or redirection. */
async function shell(command: string) {
  const child = Bun.spawn(["sh", "-c", command], {
    env: { TALLY: `${process.execPath} src/main.ts` },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

test("a disk that is full makes the command fail, in one line", async () => {
  expect(await shell("$TALLY config > /dev/full")).toEqual({
    code: 1,
    stdout: "",
    stderr: "tally: the result can't be written: ENOSPC\n",
  });
});

test("a reader that has seen enough doesn't", async () => {
  expect(await shell("{ $TALLY config; echo $? >&2; } | true")).toEqual({
    code: 0,
    stdout: "",
    stderr: "0\n",
  });
});

test("more than a pipe holds arrives whole at a slow reader", async () => {
  const script = `
    import { print } from "${import.meta.dir}/../../src/commands/print.ts";
    print("x".repeat(1_000_000));
    print("ü");`;
  const child = Bun.spawn(["sh", "-c", '"$0" -e "$1" | { sleep 0.3; cat; }', process.execPath, script], {
    stdout: "pipe",
  });
  expect(await child.stdout.text()).toBe(`${"x".repeat(1_000_000)}\nü\n`);
});
