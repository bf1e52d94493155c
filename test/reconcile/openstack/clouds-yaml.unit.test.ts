/** clouds.yaml and secure.yaml: where they are looked for, how they are merged, what is refused. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type CloudEntry, readCloudEntry } from "../../../src/reconcile/openstack/clouds-yaml.ts";
import { refusalOf } from "./observing.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "tally-clouds-yaml-"));
});
afterEach(() => rmSync(home, { recursive: true }));

function write(name: string, text: string): string {
  const file = join(home, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

/** An entry `prod` with this account and these further lines. */
function entry(auth: string, more = ""): string {
  const indented = auth.trim().replace(/^/gm, "      ");
  return `clouds:\n  prod:\n    auth:\n${indented}\n${more.replace(/^(?=.)/gm, "    ")}`;
}

const AUTH = `
auth_url: https://cloud.example:5000/v3
username: collector
password: hidden
project_name: collector
user_domain_name: Default
project_domain_name: Default`;

function read(env: Record<string, string> = {}, directories?: string[]): Promise<CloudEntry> {
  return readCloudEntry("prod", { HOME: home, ...env }, directories ?? [home]);
}

/** The user and the scope that would be logged in. */
async function account(auth: string, more = ""): Promise<unknown> {
  write("clouds.yaml", entry(auth, more));
  return (await read()).login.auth;
}

test("an account by names", async () => {
  const Default = { name: "Default" };
  expect(await account(AUTH)).toEqual({
    identity: {
      methods: ["password"],
      password: { user: { name: "collector", domain: Default, password: "hidden" } },
    },
    scope: { project: { name: "collector", domain: Default } },
  });
});

test("an account by ids, which need no domains", async () => {
  const auth = "auth_url: https://cloud.example:5000\nuser_id: u1\npassword: hidden\nproject_id: p1";
  expect(await account(auth)).toEqual({
    identity: { methods: ["password"], password: { user: { id: "u1", password: "hidden" } } },
    scope: { project: { id: "p1" } },
  });
});

test("domains by id", async () => {
  const auth = AUTH.replace("user_domain_name: Default", "user_domain_id: d1").replace(
    "project_domain_name: Default",
    "project_domain_id: d2",
  );
  expect(await account(auth)).toMatchObject({
    identity: { password: { user: { domain: { id: "d1" } } } },
    scope: { project: { domain: { id: "d2" } } },
  });
});

test("an application credential by name", async () => {
  const auth = `
auth_url: https://cloud.example:5000
application_credential_name: tally
application_credential_secret: hidden
username: collector
user_domain_name: Default`;
  expect(await account(auth, "auth_type: v3applicationcredential")).toEqual({
    identity: {
      methods: ["application_credential"],
      application_credential: {
        name: "tally",
        user: { name: "collector", domain: { name: "Default" } },
        secret: "hidden",
      },
    },
  });
});

test("texts are what is written: no number, no date, no boolean", async () => {
  const auth = AUTH.replace("hidden", "0123").replace("username: collector", "username: no");
  const login = await account(auth.replace("project_name: collector", "project_name: 2026-12-01"));
  expect(login).toMatchObject({
    identity: { password: { user: { name: "no", password: "0123" } } },
    scope: { project: { name: "2026-12-01" } },
  });
});

test("merge keys and anchors, as OpenStack's own tools read them", async () => {
  const text = `common: &common
  region_name: RegionTwo
clouds:
  prod:
    <<: *common
    auth:
${AUTH.trim().replace(/^/gm, "      ")}
`;
  write("clouds.yaml", text);
  expect((await read()).region).toBe("RegionTwo");
});

for (const [address, keystone] of [
  ["https://cloud.example:5000", "https://cloud.example:5000/v3"],
  ["https://cloud.example:5000/", "https://cloud.example:5000/v3"],
  ["https://cloud.example:5000/v3/", "https://cloud.example:5000/v3"],
  ["https://cloud.example/identity", "https://cloud.example/identity/v3"],
  ["https://cloud.example/identity/v2.0", "https://cloud.example/identity/v3"],
] as const) {
  test(`auth_url ${address} is Keystone at ${keystone}`, async () => {
    write("clouds.yaml", entry(AUTH.replace("https://cloud.example:5000/v3", address)));
    expect((await read()).keystone).toBe(keystone);
  });
}

test("secure.yaml beside it is merged over it, member by member", async () => {
  write("clouds.yaml", entry(AUTH.replace("password: hidden", "password: stale"), "region_name: RegionOne"));
  write("secure.yaml", "clouds:\n  prod:\n    auth:\n      password: fresh\n");
  const { login, secrets, region } = await read();
  expect(login).toMatchObject({
    auth: { identity: { password: { user: { name: "collector", password: "fresh" } } } },
  });
  expect(secrets).toEqual(["fresh"]);
  expect(region).toBe("RegionOne");
});

test("the first clouds.yaml counts: the working directory's, the user's, the machine's", async () => {
  const named = (region: string) => entry(AUTH, `region_name: ${region}`);
  const places = ["cwd", "config/openstack", "etc/openstack"];
  for (const place of places.toReversed()) {
    write(`${place}/clouds.yaml`, named(place));
    const directories = places.map((one) => join(home, one));
    expect((await read({}, directories)).region).toBe(place);
  }
});

test("XDG_CONFIG_HOME, else ~/.config", async () => {
  write(".config/openstack/clouds.yaml", entry(AUTH, "region_name: home"));
  const usual = (env: Record<string, string>) => readCloudEntry("prod", { HOME: home, ...env });
  expect((await usual({})).region).toBe("home");
  write("xdg/openstack/clouds.yaml", entry(AUTH, "region_name: xdg"));
  expect((await usual({ XDG_CONFIG_HOME: join(home, "xdg") })).region).toBe("xdg");
});

test("OS_CLIENT_CONFIG_FILE names the only one", async () => {
  write("clouds.yaml", entry(AUTH));
  const elsewhere = join(home, "elsewhere.yaml");
  expect(await refusalOf(read({ OS_CLIENT_CONFIG_FILE: elsewhere }))).toBe(
    `prod: there is no clouds.yaml: looked for ${elsewhere}`,
  );
  write("elsewhere.yaml", entry(AUTH, "region_name: elsewhere"));
  expect((await read({ OS_CLIENT_CONFIG_FILE: elsewhere })).region).toBe("elsewhere");
});

test("OS_REGION_NAME and OS_INTERFACE override the entry", async () => {
  write("clouds.yaml", entry(AUTH, "region_name: RegionOne\ninterface: admin"));
  expect(await read()).toMatchObject({ region: "RegionOne", interface: "admin" });
  const env = { OS_REGION_NAME: "RegionTwo", OS_INTERFACE: "internalURL" };
  expect(await read(env)).toMatchObject({ region: "RegionTwo", interface: "internal" });
});

test("without a word on them: public endpoints, no region, certificates verified", async () => {
  write("clouds.yaml", entry(AUTH));
  expect(await read()).toMatchObject({
    region: null,
    interface: "public",
    trust: { ca: null, verify: true },
  });
});

test("cacert is read, and verify may be switched off", async () => {
  const bundle = write("ca.pem", "the bundle");
  write("clouds.yaml", entry(AUTH, `cacert: ${bundle}`));
  expect((await read()).trust).toEqual({ ca: "the bundle", verify: true });
  write("clouds.yaml", entry(AUTH, "verify: False"));
  expect((await read()).trust).toEqual({ ca: null, verify: false });
});

for (const [what, change, more, why] of [
  ["system scope", ["project_name: collector", "system_scope: all"], "", "system_scope is set"],
  ["no project", ["project_name: collector\n", ""], "", "auth.project_name or auth.project_id is missing"],
  ["no user", ["username: collector\n", ""], "", "auth.username or auth.user_id is missing"],
  ["no password", ["password: hidden\n", ""], "", "auth.password is missing"],
  ["no address", ["auth_url: https://cloud.example:5000/v3\n", ""], "profile: vendor", "profiles of vendors"],
  ["an address that is none", ["https://cloud.example:5000/v3", "cloud.example"], "", "no http or https URL"],
  ["a password in the address", ["https://", "https://u:hidden@"], "", "must hold no user or password"],
  ["another way to log in", ["", ""], "auth_type: v3oidcpassword", "not v3oidcpassword"],
  ["no secret", ["", ""], "auth_type: v3applicationcredential", "application_credential_secret is missing"],
  ["an unknown interface", ["", ""], "interface: private", "must be public, internal or admin"],
  ["a verify that is no flag", ["", ""], "verify: perhaps", "verify must be true or false"],
] as const) {
  test(`${what} is refused with the entry's name and its file`, async () => {
    const file = write("clouds.yaml", entry(AUTH.replace(change[0], change[1]), more));
    const message = await refusalOf(read());
    expect(message).toStartWith(`prod in ${file}: `);
    expect(message).toContain(why);
    expect(message).not.toContain("hidden");
  });
}

test("an entry that is not there, a file that is no YAML: both are named, neither is quoted", async () => {
  const file = write("clouds.yaml", "clouds:\n  stage: {}\n");
  expect(await refusalOf(read())).toBe(`prod in ${file}: there is no such entry under \`clouds\``);
  write("clouds.yaml", "clouds:\n  prod: [hidden\n");
  expect(await refusalOf(read())).toMatch(/clouds\.yaml: line \d+ is not YAML/);
  write("clouds.yaml", "");
  expect(await refusalOf(read())).toBe(`prod in ${file}: there is no such entry under \`clouds\``);
});

test("a file that may not be read is not one that isn't there", async () => {
  mkdirSync(join(home, "clouds.yaml"));
  expect(await refusalOf(read())).toBe(`${join(home, "clouds.yaml")} can't be read (EISDIR)`);
});
