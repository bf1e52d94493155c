import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Environment,
  explainSettings,
  readSettings,
  SETTING_DOCUMENTS,
  SettingsError,
} from "../../src/settings.ts";

const directory = mkdtempSync(join(tmpdir(), "tally-settings-"));
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

function faults(env: Environment): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.faults;
    throw error;
  }
  return [];
}

test("an empty environment is the defaults", () => {
  expect(readSettings({ HOME: "/home/ada" })).toEqual({
    logLevel: "INFO",
    http: { host: "0.0.0.0", port: 8080 },
    database: { url: null, maxConnections: 10, autoMigrate: false, silenceSeconds: 10 },
    auth: { mode: "enforced", internalToken: null },
    unhealthyThresholdSeconds: 600,
    requireSizeSchema: false,
    attributingRelationTypes: ["infrastructure_tenant"],
    metrics: { enabled: true, refreshSeconds: 60 },
    sync: {
      cloudsConfig: null,
      allowAt: false,
      budgetSeconds: 45,
      settleSeconds: 60,
      intervalSeconds: 600,
      maxAbsentPercent: 20,
    },
    dataDir: "/home/ada/.local/share/tally",
  });
});

test("every variable is read", () => {
  expect(
    readSettings({
      TALLY_LOG_LEVEL: "DEBUG",
      TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
      TALLY_REPORTING_HTTP_PORT: "0",
      TALLY_REPORTING_DB_URL: "postgres://tally:s3cret@db.example/tally?sslmode=require",
      TALLY_REPORTING_DB_MAX_CONNS: "25",
      TALLY_REPORTING_AUTO_MIGRATE: "true",
      TALLY_REPORTING_DB_SILENCE_S: "3",
      TALLY_REPORTING_AUTH_MODE: "disabled",
      TALLY_REPORTING_INTERNAL_TOKEN: "hush",
      TALLY_REPORTING_UNHEALTHY_THRESHOLD_S: "30",
      TALLY_INGEST_REQUIRE_SIZE_SCHEMA: "true",
      TALLY_REPORTING_ATTRIBUTING_RELATION_TYPES: "infrastructure_tenant, billed_to",
      TALLY_METRICS_ENABLED: "false",
      TALLY_REPORTING_METRICS_REFRESH_S: "5",
      TALLY_REPORTING_CLOUDS_CONFIG: "/etc/tally/clouds.yaml",
      TALLY_REPORTING_SYNC_ALLOW_AT: "true",
      TALLY_REPORTING_SYNC_BUDGET_S: "600",
      TALLY_REPORTING_SYNC_SETTLE_S: "0",
      TALLY_REPORTING_SYNC_INTERVAL_S: "0",
      TALLY_REPORTING_SYNC_MAX_ABSENT_PERCENT: "100",
      TALLY_DATA_DIR: "/srv/tally",
    }),
  ).toEqual({
    logLevel: "DEBUG",
    http: { host: "127.0.0.1", port: 0 },
    database: {
      url: "postgres://tally:s3cret@db.example/tally?sslmode=require",
      maxConnections: 25,
      autoMigrate: true,
      silenceSeconds: 3,
    },
    auth: { mode: "disabled", internalToken: "hush" },
    unhealthyThresholdSeconds: 30,
    requireSizeSchema: true,
    attributingRelationTypes: ["infrastructure_tenant", "billed_to"],
    metrics: { enabled: false, refreshSeconds: 5 },
    sync: {
      cloudsConfig: "/etc/tally/clouds.yaml",
      allowAt: true,
      budgetSeconds: 600,
      settleSeconds: 0,
      intervalSeconds: 0,
      maxAbsentPercent: 100,
    },
    dataDir: "/srv/tally",
  });
});

test("a name that is far from every setting's isn't taken for a slip of the hand", () => {
  const names = ["TALLY_HTTP_PORT", "TALLY_DB_URL", "TALLY_PORT_OF_CALL", "TALLY_REPORTING_HTTP_PROT"];
  expect(faults(Object.fromEntries(names.map((name) => [name, "1"])))).toEqual([
    "TALLY_DB_URL is no setting of Tally: did you mean TALLY_REPORTING_DB_URL?",
    "TALLY_HTTP_PORT is no setting of Tally: did you mean TALLY_REPORTING_HTTP_PORT?",
    "TALLY_PORT_OF_CALL is no setting of Tally: unset it, and tally config prints all the settings that there are",
    "TALLY_REPORTING_HTTP_PROT is no setting of Tally: did you mean TALLY_REPORTING_HTTP_PORT?",
  ]);
});

test("all faults are told at once", () => {
  expect(
    faults({
      TALLY_LOG_LEVEL: "info",
      TALLY_REPORTING_HTTP_PORT: "65536",
      TALLY_REPORTING_AUTO_MIGRATE: "yes",
      TALLY_REPORTNG_DB_URL: "postgres://u@h/d",
    }),
  ).toEqual([
    "TALLY_REPORTNG_DB_URL is no setting of Tally: did you mean TALLY_REPORTING_DB_URL?",
    "TALLY_LOG_LEVEL must be one of DEBUG, INFO, WARN, ERROR",
    "TALLY_REPORTING_HTTP_PORT must be an integer from 0 to 65535",
    "TALLY_REPORTING_AUTO_MIGRATE must be true or false",
  ]);
});

describe("names are different and none is empty", () => {
  for (const text of ["", ",", "a,", "a,,b", "a,b,a", "x".repeat(513)]) {
    test(JSON.stringify(text.slice(0, 20)), () => {
      expect(faults({ TALLY_REPORTING_ATTRIBUTING_RELATION_TYPES: text })).toHaveLength(1);
    });
  }
});

describe("integers are strict", () => {
  for (const text of [
    "",
    " 80",
    "80 ",
    "8e3",
    "0x50",
    "-1",
    "+80",
    "080",
    "80.0",
    "65536",
    "99999999999999999999",
  ]) {
    test(JSON.stringify(text), () => {
      expect(faults({ TALLY_REPORTING_HTTP_PORT: text })).toHaveLength(1);
    });
  }
  test("the ranges' ends are in", () => {
    for (const port of ["0", "65535"]) expect(faults({ TALLY_REPORTING_HTTP_PORT: port })).toEqual([]);
    for (const max of ["1", "1000"]) expect(faults({ TALLY_REPORTING_DB_MAX_CONNS: max })).toEqual([]);
    for (const max of ["0", "1001"]) expect(faults({ TALLY_REPORTING_DB_MAX_CONNS: max })).toHaveLength(1);
    for (const max of ["0", "86401"]) {
      expect(faults({ TALLY_REPORTING_UNHEALTHY_THRESHOLD_S: max })).toHaveLength(1);
      expect(faults({ TALLY_REPORTING_METRICS_REFRESH_S: max })).toHaveLength(1);
      expect(faults({ TALLY_REPORTING_SYNC_BUDGET_S: max })).toHaveLength(1);
    }
    for (const [name, most] of [
      ["SETTLE_S", 3_600],
      ["INTERVAL_S", 86_400],
      ["MAX_ABSENT_PERCENT", 100],
    ] as const) {
      const variable = `TALLY_REPORTING_SYNC_${name}`;
      expect(faults({ [variable]: "0" })).toEqual([]);
      expect(faults({ [variable]: String(most) })).toEqual([]);
      expect(faults({ [variable]: String(most + 1) })).toHaveLength(1);
    }
  });
});

test("switches take true and false only", () => {
  for (const text of ["TRUE", "1", "on", "no"]) {
    expect(faults({ TALLY_METRICS_ENABLED: text })).toEqual(["TALLY_METRICS_ENABLED must be true or false"]);
  }
});

test("a variable that is set but empty is refused", () => {
  expect(faults({ TALLY_REPORTING_DB_URL: "" })).toEqual([
    "TALLY_REPORTING_DB_URL is set but empty: unset it, or give it a value",
  ]);
});

test("variables of others are none of our business", () => {
  expect(
    faults({ TALLYHO: "1", DATABASE_URL: "postgres://nobody", PGHOST: "nowhere", tally_log_level: "x" }),
  ).toEqual([]);
});

test("_FILE exists for secrets only", () => {
  expect(faults({ TALLY_LOG_LEVEL_FILE: "/x" })).toEqual([
    "TALLY_LOG_LEVEL_FILE is no setting of Tally: did you mean TALLY_LOG_LEVEL?",
  ]);
});

describe("secrets from files", () => {
  test("one trailing newline is trimmed", () => {
    const env = {
      TALLY_REPORTING_INTERNAL_TOKEN_FILE: file("token", "hush\n"),
      TALLY_REPORTING_DB_URL_FILE: file("url", "postgres://u:p@h/d\r\n"),
    };
    expect(readSettings(env).auth.internalToken).toBe("hush");
    expect(readSettings(env).database.url).toBe("postgres://u:p@h/d");
  });

  test("only one", () => {
    expect(faults({ TALLY_REPORTING_INTERNAL_TOKEN_FILE: file("two", "hush\n\n") })).toEqual([
      "TALLY_REPORTING_INTERNAL_TOKEN must be visible ASCII characters without spaces",
    ]);
  });

  test("an empty file is refused, and one that holds a newline only", () => {
    for (const text of ["", "\n"]) {
      const path = file("empty", text);
      expect(faults({ TALLY_REPORTING_INTERNAL_TOKEN_FILE: path })).toEqual([
        `TALLY_REPORTING_INTERNAL_TOKEN_FILE names an empty file: ${path}`,
      ]);
    }
  });

  test("both forms set are refused", () => {
    const env = { TALLY_REPORTING_INTERNAL_TOKEN: "a", TALLY_REPORTING_INTERNAL_TOKEN_FILE: file("b", "b") };
    expect(faults(env)).toEqual([
      "TALLY_REPORTING_INTERNAL_TOKEN and TALLY_REPORTING_INTERNAL_TOKEN_FILE are both set: keep one",
    ]);
  });

  test("a file that can't be read is refused, with the reason", () => {
    expect(faults({ TALLY_REPORTING_DB_URL_FILE: "/nowhere/url" })).toEqual([
      "TALLY_REPORTING_DB_URL_FILE names a file that can't be read (ENOENT): /nowhere/url",
    ]);
    expect(faults({ TALLY_REPORTING_DB_URL_FILE: directory })).toEqual([
      `TALLY_REPORTING_DB_URL_FILE names a file that can't be read (EISDIR): ${directory}`,
    ]);
  });
});

describe("disabled authentication", () => {
  for (const host of ["127.0.0.1", "127.8.8.8", "::1", "localhost"]) {
    test(`listens on ${host}`, () => {
      expect(faults({ TALLY_REPORTING_AUTH_MODE: "disabled", TALLY_REPORTING_HTTP_HOST: host })).toEqual([]);
    });
  }
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "tally.example.org"]) {
    test(`refuses ${host}`, () => {
      expect(faults({ TALLY_REPORTING_AUTH_MODE: "disabled", TALLY_REPORTING_HTTP_HOST: host })).toEqual([
        `TALLY_REPORTING_AUTH_MODE=disabled listens on loopback only, not on ${host}: set TALLY_REPORTING_HTTP_HOST=127.0.0.1`,
      ]);
    });
  }
  test("refuses the default host", () => {
    expect(faults({ TALLY_REPORTING_AUTH_MODE: "disabled" })).toHaveLength(1);
  });
});

describe("the data directory", () => {
  test("is systemd's before ours", () => {
    const env = { STATE_DIRECTORY: "/var/lib/tally", TALLY_DATA_DIR: "/srv/tally" };
    expect(readSettings(env).dataDir).toBe("/var/lib/tally");
  });
  test("is the first of several of systemd's", () => {
    expect(readSettings({ STATE_DIRECTORY: "/var/lib/tally:/var/lib/other" }).dataDir).toBe("/var/lib/tally");
  });
  test("is TALLY_DATA_DIR otherwise, from the working directory on", () => {
    expect(readSettings({ TALLY_DATA_DIR: "data" }).dataDir).toBe(join(process.cwd(), "data"));
  });
  test.if(process.getuid?.() === 0)("is not below a home that root keeps closed", () => {
    const home = mkdtempSync(join(directory, "home-"));
    expect(readSettings({ HOME: home }).dataDir).toBe("/var/lib/tally");
    chmodSync(home, 0o711);
    expect(readSettings({ HOME: home }).dataDir).toBe(`${home}/.local/share/tally`);
  });
});

test("a database URL's faults never quote it", () => {
  for (const [url, fault] of [
    ["mysql://u:s3cret@h/d", "must begin with postgres:// or postgresql://"],
    ["postgres://u:s3cret@/d", "names no host"],
    ["postgres://h/d", "names no user"],
    ["postgres://u:s3c#ret@h/d", "is no readable URL (percent-encode special characters of the password)"],
    ["postgres://u:s3cret@h/d#x", "must not have a # part (percent-encode it as %23 in the password)"],
    [
      "postgres://u:s3cret@h/d?sslmode=maybe",
      "has an sslmode that is not one of disable, allow, prefer, require, verify-ca, verify-full",
    ],
    [
      "postgres://u:s3cret@h/d?pool=3",
      "has the parameter pool, which is not one of host, port, user, password, dbname, sslmode, options, pooler",
    ],
    ["postgres://u:%zz@h/d", "holds a percent sign that encodes nothing"],
    ["postgres://u:s3cret@h:0/d", "has a port that is not 1 to 65535"],
  ] as const) {
    expect(faults({ TALLY_REPORTING_DB_URL: url })).toEqual([`TALLY_REPORTING_DB_URL ${fault}`]);
  }
});

test("what tally config shows: values, masked secrets, sources", () => {
  const { lines } = explainSettings({
    TALLY_REPORTING_DB_URL: "postgres://ada:s3cret@db.example:6432/bills?password=s3cret",
    TALLY_REPORTING_INTERNAL_TOKEN_FILE: file("shown", "hush"),
    TALLY_LOG_LEVEL: "WARN",
    STATE_DIRECTORY: "/var/lib/tally",
  });
  const shown = lines.map(({ name, value, source }) => `${name} ${value} ${source}`);
  expect(shown).toEqual([
    "TALLY_LOG_LEVEL WARN environment",
    "TALLY_REPORTING_HTTP_HOST 0.0.0.0 default",
    "TALLY_REPORTING_HTTP_PORT 8080 default",
    "TALLY_REPORTING_DB_URL postgres://ada:***@db.example:6432/bills environment",
    "TALLY_REPORTING_DB_MAX_CONNS 10 default",
    "TALLY_REPORTING_AUTO_MIGRATE false default",
    "TALLY_REPORTING_DB_SILENCE_S 10 default",
    "TALLY_REPORTING_AUTH_MODE enforced default",
    `TALLY_REPORTING_INTERNAL_TOKEN *** file ${directory}/shown`,
    "TALLY_REPORTING_UNHEALTHY_THRESHOLD_S 600 default",
    "TALLY_INGEST_REQUIRE_SIZE_SCHEMA false default",
    "TALLY_REPORTING_ATTRIBUTING_RELATION_TYPES infrastructure_tenant default",
    "TALLY_METRICS_ENABLED true default",
    "TALLY_REPORTING_METRICS_REFRESH_S 60 default",
    "TALLY_REPORTING_CLOUDS_CONFIG (none) default",
    "TALLY_REPORTING_SYNC_ALLOW_AT false default",
    "TALLY_REPORTING_SYNC_BUDGET_S 45 default",
    "TALLY_REPORTING_SYNC_SETTLE_S 60 default",
    "TALLY_REPORTING_SYNC_INTERVAL_S 600 default",
    "TALLY_REPORTING_SYNC_MAX_ABSENT_PERCENT 20 default",
    "TALLY_DATA_DIR /var/lib/tally STATE_DIRECTORY",
  ]);
});

test("every setting is documented", () => {
  expect(SETTING_DOCUMENTS.filter((entry) => entry.fromFile).map((entry) => entry.name)).toEqual([
    "TALLY_REPORTING_DB_URL",
    "TALLY_REPORTING_INTERNAL_TOKEN",
  ]);
  for (const entry of SETTING_DOCUMENTS) expect(entry.about).toMatch(/^\S.*\.$/);
});
