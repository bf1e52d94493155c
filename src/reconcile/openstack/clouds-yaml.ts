/**
 * The operator's own clouds.yaml, and the secure.yaml beside it: which cloud, which account. Both are read afresh for
 * every run, so that a rotated password counts.
 */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Environment } from "../../settings.ts";
import { RunFailure } from "../adapter.ts";
import type { Trust } from "./transport.ts";
import { isYamlMap, merged, readYaml, type YamlMap, type YamlValue } from "./yaml-text.ts";

/** One cloud and the account that reads it. */
export interface CloudEntry {
  /** Its name in clouds.yaml. */
  readonly name: string;
  readonly file: string;
  /** Keystone's address, ending in the version: `https://cloud.example:5000/v3`. */
  readonly keystone: string;
  /** The body of the token request. */
  readonly login: Login;
  /** Texts that may be in no message. */
  readonly secrets: readonly string[];
  /** Null: the cloud has only one, or the run is refused. */
  readonly region: string | null;
  readonly interface: "public" | "internal" | "admin";
  readonly trust: Trust;
}

type Domain = { readonly id: string } | { readonly name: string };
/** What Keystone's `POST /v3/auth/tokens` takes. */
export interface Login {
  readonly auth: {
    readonly identity: Readonly<Record<string, unknown>>;
    readonly scope?: { readonly project: Readonly<Record<string, unknown>> };
  };
}

/**
 * Reads the entry `name`. The first clouds.yaml counts of: the one that `OS_CLIENT_CONFIG_FILE` names (then only that),
 * the working directory's, `${XDG_CONFIG_HOME:-~/.config}/openstack`'s, `/etc/openstack`'s.
 * @param directories where it is looked for, in this order
 * @throws {RunFailure} that names the entry and its file, and holds no secret
 */
export async function readCloudEntry(
  name: string,
  env: Environment,
  directories: readonly string[] = usualDirectories(env),
): Promise<CloudEntry> {
  const named = env.OS_CLIENT_CONFIG_FILE ?? "";
  const candidates = named === "" ? directories.map((directory) => join(directory, "clouds.yaml")) : [named];
  for (const file of candidates) {
    const clouds = await yamlIn(file);
    if (clouds === null) continue;
    const secure = await yamlIn(join(dirname(file), "secure.yaml"));
    const all = isYamlMap(secure) ? merged(clouds, secure) : clouds;
    return new EntryReader(name, file, env).read(all);
  }
  throw new RunFailure(`${name}: there is no clouds.yaml: looked for ${candidates.join(", ")}`);
}

function usualDirectories(env: Environment): string[] {
  const home = env.HOME || homedir();
  const config = env.XDG_CONFIG_HOME || join(home, ".config");
  return [process.cwd(), join(config, "openstack"), "/etc/openstack"];
}

/** @returns null where there is no such file. @throws {RunFailure} when it can't be read */
async function yamlIn(file: string): Promise<YamlValue> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new RunFailure(`${file} can't be read (${code})`);
  }
  try {
    return readYaml(text) ?? Object.create(null);
  } catch (error) {
    throw new RunFailure(`${file}: ${error instanceof Error ? error.message : "not YAML"}`);
  }
}

/** Reads one entry; every fault names it. */
class EntryReader {
  readonly #name: string;
  readonly #file: string;
  readonly #env: Environment;

  constructor(name: string, file: string, env: Environment) {
    this.#name = name;
    this.#file = file;
    this.#env = env;
  }

  async read(all: YamlValue): Promise<CloudEntry> {
    const clouds = isYamlMap(all) ? all.clouds : undefined;
    const entry = isYamlMap(clouds) ? clouds[this.#name] : undefined;
    if (!isYamlMap(entry)) this.#refuse("there is no such entry under `clouds`");
    const { auth } = entry;
    if (!isYamlMap(auth)) this.#refuse("it has no `auth`");
    return {
      name: this.#name,
      file: this.#file,
      keystone: this.#keystone(auth, entry),
      ...this.#login(auth, entry),
      region: this.#env.OS_REGION_NAME || text(entry, "region_name"),
      interface: this.#interface(entry),
      trust: await this.#trust(entry),
    };
  }

  #refuse(why: string): never {
    throw new RunFailure(`${this.#name} in ${this.#file}: ${why}`);
  }

  #keystone(auth: YamlMap, entry: YamlMap): string {
    const address = text(auth, "auth_url");
    if (address === null) {
      const profile = text(entry, "profile") === null ? "" : " (profiles of vendors are not known here)";
      this.#refuse(`auth.auth_url is missing${profile}`);
    }
    const url = URL.canParse(address) ? new URL(address) : null;
    if (url === null || !["http:", "https:"].includes(url.protocol))
      this.#refuse("auth.auth_url is no http or https URL");
    if (url.username !== "" || url.password !== "")
      this.#refuse("auth.auth_url must hold no user or password");
    const path = url.pathname.replace(/\/+$/, "").replace(/\/v(?:2\.0|3)$/, "");
    return `${url.origin}${path}/v3`;
  }

  #login(auth: YamlMap, entry: YamlMap): Pick<CloudEntry, "login" | "secrets"> {
    const type = text(entry, "auth_type") ?? "password";
    if (type === "v3applicationcredential") return this.#applicationCredential(auth);
    if (type !== "password" && type !== "v3password") {
      this.#refuse(`auth_type must be password or v3applicationcredential, not ${type}`);
    }
    if (text(auth, "system_scope") !== null) {
      this.#refuse(
        "auth.system_scope is set, and a token of the system has no access to the block storage of projects: " +
          "give the account the role admin on a project, and name that project",
      );
    }
    const password = text(auth, "password");
    if (password === null) this.#refuse("auth.password is missing");
    const user = this.#user(auth);
    const project = this.#project(auth);
    const identity = { methods: ["password"], password: { user: { ...user, password } } };
    return { login: { auth: { identity, scope: { project } } }, secrets: [password] };
  }

  #applicationCredential(auth: YamlMap): Pick<CloudEntry, "login" | "secrets"> {
    const secret = text(auth, "application_credential_secret");
    if (secret === null) this.#refuse("auth.application_credential_secret is missing");
    const id = text(auth, "application_credential_id");
    const name = text(auth, "application_credential_name");
    if (id === null && name === null) {
      this.#refuse("auth.application_credential_id, or application_credential_name and the user, is missing");
    }
    const which = id === null ? { name, user: this.#user(auth) } : { id };
    const identity = {
      methods: ["application_credential"],
      application_credential: { ...which, secret },
    };
    return { login: { auth: { identity } }, secrets: [secret] };
  }

  #user(auth: YamlMap): Readonly<Record<string, unknown>> {
    const id = text(auth, "user_id");
    if (id !== null) return { id };
    const name = text(auth, "username");
    if (name === null) this.#refuse("auth.username or auth.user_id is missing");
    return { name, domain: this.#domain(auth, "user") };
  }

  #project(auth: YamlMap): Readonly<Record<string, unknown>> {
    const id = text(auth, "project_id") ?? text(auth, "tenant_id");
    if (id !== null) return { id };
    const name = text(auth, "project_name") ?? text(auth, "tenant_name");
    if (name === null) {
      this.#refuse(
        "auth.project_name or auth.project_id is missing: a token without a project reaches no service",
      );
    }
    return { name, domain: this.#domain(auth, "project") };
  }

  #domain(auth: YamlMap, of: "user" | "project"): Domain {
    const id = text(auth, `${of}_domain_id`);
    if (id !== null) return { id };
    const name = text(auth, `${of}_domain_name`);
    if (name !== null) return { name };
    const fallbackId = text(auth, "default_domain_id") ?? text(auth, "domain_id");
    if (fallbackId !== null) return { id: fallbackId };
    const fallback = text(auth, "default_domain_name") ?? text(auth, "domain_name");
    return fallback === null ? { id: "default" } : { name: fallback };
  }

  #interface(entry: YamlMap): CloudEntry["interface"] {
    const given =
      this.#env.OS_INTERFACE || text(entry, "interface") || text(entry, "endpoint_type") || "public";
    const name = given.replace(/URL$/, "");
    if (name === "public" || name === "internal" || name === "admin") return name;
    this.#refuse(`interface must be public, internal or admin, not ${given}`);
  }

  async #trust(entry: YamlMap): Promise<Trust> {
    const verify = this.#flag(entry, "verify");
    const bundle = text(entry, "cacert");
    if (bundle === null || !verify) return { ca: null, verify };
    const file = resolve(bundle.replace(/^~(?=\/)/, this.#env.HOME || homedir()));
    try {
      return { ca: await readFile(file, "utf8"), verify };
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
      this.#refuse(`cacert ${file} can't be read (${code})`);
    }
  }

  #flag(entry: YamlMap, name: string): boolean {
    const given = text(entry, name);
    if (given === null || /^(?:true|yes|on|1)$/i.test(given)) return true;
    if (/^(?:false|no|off|0)$/i.test(given)) return false;
    this.#refuse(`${name} must be true or false`);
  }
}

/** A member that is a text with something in it, else null. */
function text(map: YamlMap, name: string): string | null {
  const value = map[name];
  return typeof value === "string" && value !== "" ? value : null;
}
