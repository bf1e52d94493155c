/** The file of the clouds that are reconciled, which TALLY_REPORTING_CLOUDS_CONFIG names. */
import { byteLength, IDENTIFIER_MAX_BYTES, VIRTUAL_PLATFORMS } from "../event/bounds.ts";
import type { Environment } from "../settings.ts";
import type { Adapter, ConfiguredCloud } from "./adapter.ts";
import { OPENSTACK, type OpenStackConfig, openStackAdapter } from "./openstack/adapter.ts";
import { isYamlMap, readYaml, YamlError, type YamlMap, type YamlValue } from "./openstack/yaml-text.ts";

/** Everything that is wrong with the file, each fault with the entry that it is in: by its cloud, or `clouds[0]`. */
export class CloudsFileError extends Error {
  override readonly name = "CloudsFileError";
}

/** One entry, before its adapter is made. */
export interface CloudSettings {
  readonly cloud: string;
  readonly platform: string;
  readonly intervalSeconds: number | null;
  readonly config: OpenStackConfig;
}

/** What an entry may name as its adapter. */
interface AdapterKind {
  readonly platform: string;
  /** Reads `adapter_config`; says what is wrong with it. */
  readonly read: (config: YamlMap, fault: Fault) => OpenStackConfig;
}

type Fault = (what: string) => void;

const ADAPTERS: ReadonlyMap<string, AdapterKind> = new Map([
  ["openstack", { platform: OPENSTACK, read: readOpenStackConfig }],
]);

/**
 * Reads the file's text. No cloud is asked, and no credential is read yet.
 * @param path names the file in messages
 * @throws {CloudsFileError} with every fault
 */
export function readCloudsFile(path: string, text: string, env: Environment): ConfiguredCloud[] {
  return readCloudSettings(path, text).map(({ cloud, platform, intervalSeconds, config }) => {
    const adapter: Adapter = openStackAdapter(config, env);
    return { cloud, platform, intervalSeconds, adapter };
  });
}

/**
 * Reads the file's text as settings.
 * @throws {CloudsFileError} with every fault
 */
export function readCloudSettings(path: string, text: string): CloudSettings[] {
  const faults: string[] = [];
  const entries = entriesIn(text, (what) => faults.push(what));
  const read = entries.map((entry, at) => readEntry(entry, at, faults));
  const names = read.flatMap((settings) => (settings === null ? [] : [settings.cloud]));
  for (const name of new Set(names.filter((one, at) => names.indexOf(one) !== at))) {
    faults.push(`${name}: the cloud is there twice`);
  }
  if (faults.length > 0) throw new CloudsFileError(`${path}: ${faults.join("; ")}`);
  return read.filter((settings) => settings !== null);
}

function entriesIn(text: string, fault: Fault): readonly YamlValue[] {
  let file: YamlValue;
  try {
    file = readYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    fault(error.message);
    return [];
  }
  if (!isYamlMap(file)) {
    fault("must be a mapping with the member `clouds`");
    return [];
  }
  for (const name of Object.keys(file)) if (name !== "clouds") fault(`unknown key \`${name}\``);
  const { clouds } = file;
  if (Array.isArray(clouds)) return clouds;
  fault("`clouds` must be a list");
  return [];
}

const KEYS = ["cloud", "platform", "adapter", "interval_s", "adapter_config"];

/** @returns null where the cloud's name itself is at fault */
function readEntry(entry: YamlValue, at: number, faults: string[]): CloudSettings | null {
  if (!isYamlMap(entry)) {
    faults.push(`clouds[${at}]: must be a mapping`);
    return null;
  }
  const cloud = text(entry, "cloud");
  const fault = (what: string) => faults.push(`${cloud ?? `clouds[${at}]`}: ${what}`);
  if (cloud === null) fault("`cloud` is missing");
  else if (byteLength(cloud) > IDENTIFIER_MAX_BYTES)
    fault(`\`cloud\` is longer than ${IDENTIFIER_MAX_BYTES} bytes`);
  else if (VIRTUAL_PLATFORMS.has(cloud)) fault("is the name of virtual projects, which no cloud can have");
  refuseUnknown(entry, KEYS, "", fault);
  const intervalSeconds = wholeNumber(entry, "interval_s", 0, 86_400, fault);

  const platform = text(entry, "platform");
  if (platform === null) fault("`platform` is missing");
  const named = text(entry, "adapter");
  const kind = ADAPTERS.get(named ?? "");
  if (named === null) fault("`adapter` is missing");
  else if (kind === undefined)
    fault(`\`adapter\` must be one of ${[...ADAPTERS.keys()].join(", ")}, not ${named}`);
  else if (platform !== null && kind.platform !== platform) {
    fault(`the adapter ${named} reads platform ${kind.platform}, not ${platform}`);
  }
  if (kind === undefined) return null;
  const given = entry.adapter_config;
  if (given !== undefined && given !== null && !isYamlMap(given)) fault("`adapter_config` must be a mapping");
  const config = kind.read(isYamlMap(given) ? given : {}, fault);
  return cloud === null ? null : { cloud, platform: kind.platform, intervalSeconds, config };
}

function readOpenStackConfig(config: YamlMap, fault: Fault): OpenStackConfig {
  const at = "adapter_config.";
  refuseUnknown(config, ["os_cloud", "include_octavia", "request_timeout_s"], at, fault);
  const osCloud = text(config, "os_cloud");
  if (osCloud === null) fault(`\`${at}os_cloud\` is missing: the entry of clouds.yaml`);
  const octavia = config.include_octavia ?? "false";
  const flag = typeof octavia === "string" ? /^(?:(true|yes|on)|false|no|off)$/i.exec(octavia) : null;
  if (flag === null) fault(`\`${at}include_octavia\` must be true or false`);
  const timeout = wholeNumber(config, "request_timeout_s", 1, 3_600, (what) =>
    fault(what.replace("`", `\`${at}`)),
  );
  return {
    osCloud: osCloud ?? "",
    includeOctavia: flag?.[1] !== undefined,
    requestTimeoutSeconds: timeout,
  };
}

function refuseUnknown(map: YamlMap, known: readonly string[], at: string, fault: Fault): void {
  for (const name of Object.keys(map)) if (!known.includes(name)) fault(`unknown key \`${at}${name}\``);
}

/** A member that is a text with something in it, else null. */
function text(map: YamlMap, name: string): string | null {
  const value = map[name];
  return typeof value === "string" && value !== "" ? value : null;
}

function wholeNumber(map: YamlMap, name: string, least: number, most: number, fault: Fault): number | null {
  const given = map[name];
  if (given === undefined || given === null) return null;
  const value = typeof given === "string" && /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN;
  if (value >= least && value <= most) return value;
  fault(`\`${name}\` must be a whole number from ${least} to ${most}`);
  return null;
}
