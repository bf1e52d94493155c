/** tally clouds check: whether Tally's account on a cloud is good enough, and how big and how fast the cloud is. */
import type { Command } from "commander";
import { instantFromMicros } from "../event/instant.ts";
import { type CloudSettings, readCloudSettings } from "../reconcile/clouds-file.ts";
import { type CloudCheck, checkOpenStack, type TypeCheck } from "../reconcile/openstack/check.ts";
import { readSettings } from "../settings.ts";
import { cloudsFileText } from "./configured-clouds.ts";
import { print } from "./print.ts";
import { type Column, renderTable, type Style, styleFor } from "./table.ts";

const DAY_MS = 86_400_000;

export function registerClouds(program: Command): void {
  const clouds = program.command("clouds").description("the clouds that Tally reconciles its record with");
  clouds
    .command("check")
    .argument("[cloud]", "only this one of TALLY_REPORTING_CLOUDS_CONFIG")
    .description(
      "log in, prove that the account sees all projects, and read every type once; changes nothing",
    )
    .action(async (cloud: string | undefined) => {
      const { cloudsConfig } = readSettings(process.env).sync;
      if (cloudsConfig === null) {
        throw new Error("no cloud is configured: TALLY_REPORTING_CLOUDS_CONFIG names no file");
      }
      const style = styleFor(process.stdout, process.env);
      const bad: string[] = [];
      for (const entry of chosen(cloudsConfig, cloud)) {
        const since = instantFromMicros(`${BigInt(Date.now() - DAY_MS) * 1_000n}`);
        const check = await checkOpenStack(entry.config, process.env, since, new AbortController().signal);
        print(renderCheck(entry.cloud, check, style));
        if (check.problems.length > 0) bad.push(entry.cloud);
      }
      if (bad.length > 0) throw new Error(`not good enough: ${bad.join(", ")} (see above)`);
    });
}

function chosen(path: string, cloud: string | undefined): CloudSettings[] {
  const all = readCloudSettings(path, cloudsFileText(path));
  if (cloud === undefined) return all;
  const found = all.filter((entry) => entry.cloud === cloud);
  if (found.length > 0) return found;
  const there = all.map((entry) => entry.cloud).join(", ");
  throw new Error(`${path} has no cloud ${cloud}; it has: ${there === "" ? "none" : there}`);
}

const COLUMNS: readonly Column[] = [
  "TYPE",
  "ENDPOINT",
  "VERSION",
  { title: "LIVING", align: "right" },
  { title: "PROJECTS", align: "right" },
  { title: "ENDED LAST DAY", align: "right" },
  { title: "SECONDS", align: "right" },
  "READ",
];

/** What a check found, for people. */
export function renderCheck(cloud: string, check: CloudCheck, style: Style): string {
  const lines = [style.bold(cloud), ...check.account.map((fact) => `  ${fact}`)];
  if (check.types.length > 0) {
    lines.push("", renderTable(COLUMNS, check.types.map(cells), style));
  }
  if (check.volumeTypes !== null) lines.push("", `volume types: ${check.volumeTypes.join(", ")}`);
  const own = check.types.filter((type) => type.onlyOwn).map((type) => type.resourceType);
  if (own.length > 0) {
    lines.push(
      "",
      `Of ${own.join(", ")} only the account's own project is seen. If others have some, it sees too little.`,
    );
  }
  lines.push("");
  if (check.problems.length === 0) lines.push(`${cloud}: the account is good enough`);
  else {
    lines.push(`${cloud}: the account is not good enough`);
    lines.push(...check.problems.map((problem) => `  - ${problem}`));
  }
  return `${lines.join("\n")}\n`;
}

function cells({ resourceType, endpoint, version, living, projects, ended, seconds, problems }: TypeCheck) {
  return [
    resourceType,
    endpoint ?? "none",
    version ?? "",
    String(living),
    String(projects),
    ended === null ? "" : String(ended),
    seconds.toFixed(2),
    problems.length === 0 ? "to its end" : "incomplete",
  ];
}
