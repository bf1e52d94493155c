/** docs/openstack.md: its examples are files that Tally reads. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCloudSettings } from "../../../src/reconcile/clouds-file.ts";
import { readCloudEntry } from "../../../src/reconcile/openstack/clouds-yaml.ts";
import { page } from "../../docs/markdown.ts";

const text = await page("docs/openstack.md");
const [cloudsFile = "", cloudsYaml = "", secureYaml = ""] = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  (match) => match[1] ?? "",
);

test("the clouds file", () => {
  expect(readCloudSettings("docs", cloudsFile)).toEqual([
    {
      cloud: "os-prod-eu1",
      platform: "openstack",
      intervalSeconds: 600,
      config: { osCloud: "prod", includeOctavia: true, requestTimeoutSeconds: 60 },
    },
  ]);
});

test("clouds.yaml and secure.yaml", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tally-docs-"));
  writeFileSync(join(directory, "ca.pem"), "the bundle");
  writeFileSync(
    join(directory, "clouds.yaml"),
    cloudsYaml.replace("/etc/ssl/cloud-ca.pem", join(directory, "ca.pem")),
  );
  writeFileSync(join(directory, "secure.yaml"), secureYaml);
  expect(await readCloudEntry("prod", {}, [directory])).toMatchObject({
    keystone: "https://cloud.example:5000/v3",
    login: { auth: { identity: { application_credential: { secret: "the-secret" } } } },
    region: "RegionOne",
    interface: "internal",
    trust: { ca: "the bundle", verify: true },
  });
  rmSync(directory, { recursive: true });
});
