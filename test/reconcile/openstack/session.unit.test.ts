/** Logins, tokens, addresses: what an account's session does with the cloud that lets it in, or doesn't. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { writeFileSync } from "node:fs";
import type { Adapter } from "../../../src/reconcile/adapter.ts";
import { openStackAdapter } from "../../../src/reconcile/openstack/adapter.ts";
import { HASTY, lines, observe, refusalOf, told } from "./observing.ts";
import {
  answered,
  PASSWORD,
  type Replay,
  type ReplayOptions,
  type Reply,
  recording,
  replay,
  tokenWith,
  usualCloudsYaml,
} from "./replay.ts";

let cloud: Replay | null = null;
afterEach(async () => {
  await cloud?.stop();
  cloud = null;
});

function recorded(options: ReplayOptions = {}): Replay {
  cloud = replay(options);
  return cloud;
}

const LOGIN = "POST keystone/v3/auth/tokens";
const FLOATING_IPS = "GET neutron/v2.0/floatingips";
const VOLUMES = "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&with_count=True";

const never = () => new AbortController().signal;

function adapterOf({ env }: Replay): Adapter {
  return openStackAdapter({ osCloud: "zed", includeOctavia: true }, env, HASTY);
}

/** One whole run. */
async function run(adapter: Adapter) {
  const session = await adapter.open({ signal: never() });
  return told(session.observe(null));
}

/** A reply that depends on how often it was asked for. */
function onTurn(reply: (turn: number, request: Request) => Response): Reply {
  let turn = 0;
  return (request) => reply(turn++, request);
}

for (const why of [
  "auth-refused-wrong-password",
  "auth-refused-unknown-user",
  "auth-refused-disabled-project",
  "auth-refused-deleted-project",
  "auth-refused-no-role",
]) {
  test(`a login that Keystone refuses ends the run and says what it may be (${why})`, async () => {
    const { directory, ...replayed } = recorded({ replies: { [LOGIN]: `keystone/${why}` } });
    const message = await refusalOf(run(adapterOf({ directory, ...replayed })));
    expect(message).toStartWith(`zed in ${directory}/clouds.yaml: Keystone (127.0.0.1:`);
    for (const cause of ["wrong password", "unknown user", "disabled or deleted project", "without a role"]) {
      expect(message).toContain(cause);
    }
    expect(replayed.asked).toEqual([LOGIN]);
  });
}

test("what Keystone says to a malformed login, which quotes it, is in no message", async () => {
  expect(
    await refusalOf(run(adapterOf(recorded({ replies: { [LOGIN]: "keystone/auth-malformed" } })))),
  ).toMatch(/^zed in .*: Keystone \(.*\) answered 400 to the login$/);
});

test("a Keystone that is not there ends the run and names the entry", async () => {
  const { env } = recorded({ cloudsYaml: () => usualCloudsYaml("http://127.0.0.1:1") });
  expect(await refusalOf(observe(env))).toMatch(
    /^zed in .*: can't log in: POST 127\.0\.0\.1:1\/keystone\/v3\/auth\/tokens: the connection was refused/,
  );
});

test("an application credential logs in without a project", async () => {
  let body = "";
  const { env } = recorded({
    cloudsYaml: (url) => `clouds:
  zed:
    auth_type: v3applicationcredential
    auth:
      auth_url: ${url}/keystone/v3/
      application_credential_id: a8dca9473ae74e03a66d9a69e7050db1
      application_credential_secret: 0123456
`,
    replies: {
      [LOGIN]: async (request) => {
        body = await request.text();
        return answered("keystone/auth-application-credential", new URL(request.url).origin);
      },
    },
  });
  expect((await observe(env)).incomplete).toEqual([]);
  expect(JSON.parse(body)).toEqual({
    auth: {
      identity: {
        methods: ["application_credential"],
        application_credential: { id: "a8dca9473ae74e03a66d9a69e7050db1", secret: "0123456" },
      },
    },
  });
});

test("an application credential with a wrong secret says so", async () => {
  const wrong = "keystone/auth-refused-application-credential-wrong-secret";
  expect(await refusalOf(run(adapterOf(recorded({ replies: { [LOGIN]: wrong } }))))).toContain("secret");
});

test("a token that expires on the way is renewed once, however many requests it was refused for", async () => {
  let good = "first";
  const refused = (name: string): Reply => {
    return (request) => {
      // All listings are refused at once; the login after that is the second.
      good = "second";
      return request.headers.get("x-auth-token") === good
        ? answered(name, "")
        : answered("neutron/error-expired-token", "");
    };
  };
  const { env, asked } = recorded({
    replies: {
      [LOGIN]: (request) => {
        const response = answered("keystone/auth-password-collector", new URL(request.url).origin);
        response.headers.set("x-subject-token", good);
        return response;
      },
      [FLOATING_IPS]: refused("neutron/floatingips-admin"),
      "GET octavia/v2/lbaas/loadbalancers": refused("octavia/loadbalancers-admin"),
      "GET glance/v2/images?member_status=all&visibility=all": refused("glance/images-visibility-all"),
    },
  });
  const seen = await observe(env);
  expect(seen.incomplete).toEqual([]);
  expect(lines(seen, "floating_ip")).toHaveLength(7);
  expect(asked.filter((what) => what === LOGIN)).toHaveLength(2);
});

test("a service that refuses the new token as well fails its own type only", async () => {
  const { env, asked } = recorded({ replies: { [FLOATING_IPS]: "neutron/error-invalid-token" } });
  const seen = await observe(env);
  expect(seen.incomplete).toEqual([
    expect.stringMatching(
      /^floating_ip: .*answered 401: The request you have made requires authentication\.$/,
    ),
  ]);
  expect(asked.filter((what) => what === FLOATING_IPS)).toHaveLength(2);
  expect(asked.filter((what) => what === LOGIN)).toHaveLength(2);
});

test("a renewal that Keystone refuses fails what was being read, and tells why", async () => {
  const { env } = recorded({
    replies: {
      [FLOATING_IPS]: "neutron/error-expired-token",
      [LOGIN]: onTurn((turn, request) =>
        answered(
          turn === 0 ? "keystone/auth-password-collector" : "keystone/auth-refused-wrong-password",
          new URL(request.url).origin,
        ),
      ),
    },
  });
  const seen = await observe(env);
  expect(seen.incomplete).toEqual([
    expect.stringMatching(/^floating_ip: zed in .*refused the login \(401\)/),
  ]);
});

test("a token is kept from run to run, until the password changes", async () => {
  const replayed = recorded();
  const adapter = adapterOf(replayed);
  await run(adapter);
  await run(adapter);
  expect(replayed.asked.filter((what) => what === LOGIN)).toHaveLength(1);
  writeFileSync(
    `${replayed.directory}/clouds.yaml`,
    usualCloudsYaml(replayed.url).replace(PASSWORD, "new-one"),
  );
  await run(adapter);
  expect(replayed.asked.filter((what) => what === LOGIN)).toHaveLength(2);
});

test("a token is given up after a run in which something failed", async () => {
  const replayed = recorded({ replies: { [FLOATING_IPS]: "neutron/error-released-404" } });
  const adapter = adapterOf(replayed);
  await run(adapter);
  await run(adapter);
  expect(replayed.asked.filter((what) => what === LOGIN)).toHaveLength(2);
});

test("a token is replaced a little before it ends, by Keystone's own clock", async () => {
  const replayed = recorded({
    replies: {
      [LOGIN]: tokenWith((token) => {
        // Good for an hour, on a clock that is years off.
        token.issued_at = "2031-01-01T00:00:00.000000Z";
        token.expires_at = "2031-01-01T01:00:00.000000Z";
      }),
    },
  });
  const adapter = adapterOf(replayed);
  const began = performance.now();
  const clock = spyOn(performance, "now");
  try {
    clock.mockReturnValue(began);
    await run(adapter);
    clock.mockReturnValue(began + 58 * 60_000);
    await run(adapter);
    expect(replayed.asked.filter((what) => what === LOGIN)).toHaveLength(1);
    clock.mockReturnValue(began + 59.5 * 60_000);
    await run(adapter);
    expect(replayed.asked.filter((what) => what === LOGIN)).toHaveLength(2);
  } finally {
    clock.mockRestore();
  }
});

test("no message holds the password or a token, whatever a service echoes", async () => {
  const echo: Reply = (request) =>
    new Response(`you sent ${request.headers.get("x-auth-token")} and ${PASSWORD}`, { status: 500 });
  const seen = await observe(recorded({ replies: { [FLOATING_IPS]: echo } }).env);
  expect(seen.incomplete).toEqual([expect.stringContaining("answered 500: you sent *** and ***")]);
});

test("an account that may not see all projects ends the run, which names the entry and the role", async () => {
  const first = "GET nova/v2.1/servers/detail?all_tenants=1&limit=1";
  for (const refused of [
    "nova/servers-detail-all-member-refused",
    "nova/servers-detail-all-reader-refused",
  ]) {
    const replayed = recorded({ replies: { [first]: refused } });
    const message = await refusalOf(run(adapterOf(replayed)));
    expect(message).toStartWith(
      `zed in ${replayed.directory}/clouds.yaml: the account may not list the servers of all`,
    );
    expect(message).toContain("Policy doesn't allow os_compute_api:servers:detail:get_all_tenants");
    expect(message).toContain("admin");
    expect(replayed.asked.at(-1)).toBe(first);
    await replayed.stop();
    cloud = null;
  }
});

test("an account without octavia's own role fails the load balancers only", async () => {
  const refused = "octavia/loadbalancers-without-octavia-role-refused";
  const seen = await observe(recorded({ replies: { "GET octavia/v2/lbaas/loadbalancers": refused } }).env);
  expect(seen.incomplete).toEqual([
    expect.stringMatching(
      /^loadbalancer: .*answered 403: Policy does not allow this request to be performed\.$/,
    ),
  ]);
  expect(lines(seen, "instance")).toHaveLength(8);
});

test("a nova that is down proves nothing: what the others say is used, what they don't say isn't", async () => {
  const down = () => new Response("down", { status: 503 });
  const { env } = recorded({ replies: { "GET nova/v2.1/": down } });
  const seen = await observe(env);
  expect(seen.incomplete.map((line) => line.split(":", 1)[0])).toEqual([
    "instance",
    "volume",
    "floating_ip",
    "image",
    "loadbalancer",
  ]);
  expect(seen.incomplete[1]).toContain("it isn't proved that the account sees all projects");
  expect(lines(seen, "volume")).toHaveLength(7);
});

test("a service that never answers costs a run its patience once, not once a request", async () => {
  const { env, asked } = recorded({ replies: { "GET cinder/v3/": () => new Promise(() => {}) } });
  const adapter = openStackAdapter({ osCloud: "zed", includeOctavia: true }, env, {
    ...HASTY,
    timeoutMs: 200,
  });
  const session = await adapter.open({ signal: never() });
  const seen = await told(session.observe(null));
  expect(seen.incomplete).toEqual([expect.stringMatching(/^volume: .*no answer within 0\.2 s$/)]);
  expect(lines(seen, "image")).toHaveLength(5);
  await expect(session.sizeNames()).rejects.toThrow("the service gave no answer before");
  expect(asked.filter((what) => what.includes("cinder"))).toHaveLength(1);
});

test("load balancers are read only where they are asked for", async () => {
  const replayed = recorded();
  const adapter = openStackAdapter({ osCloud: "zed", includeOctavia: false }, replayed.env, HASTY);
  expect(adapter.resourceTypes).toEqual(["instance", "volume", "floating_ip", "image"]);
  await run(adapter);
  expect(replayed.asked.filter((what) => what.includes("octavia"))).toEqual([]);
});

test("a run that is cancelled ends with what cancelled it", async () => {
  const cancelled = new AbortController();
  const { env } = recorded({
    replies: {
      [VOLUMES]: () => {
        cancelled.abort(new Error("the budget is spent"));
        return new Promise(() => {});
      },
    },
  });
  const adapter = openStackAdapter({ osCloud: "zed", includeOctavia: true }, env, HASTY);
  const session = await adapter.open({ signal: cancelled.signal });
  await expect(told(session.observe(null))).rejects.toThrow("the budget is spent");
});

test("a reader that leaves early, or is slow while everything fails, leaves nothing behind", async () => {
  const cancelled = new AbortController();
  const { env, asked } = recorded({ replies: { [VOLUMES]: () => new Promise(() => {}) } });
  const adapter = openStackAdapter({ osCloud: "zed", includeOctavia: true }, env, HASTY);
  const early = await adapter.open({ signal: new AbortController().signal });
  for await (const observation of early.observe(null)) if (observation.kind === "resource") break;
  const before = asked.length;

  const slow = await adapter.open({ signal: cancelled.signal });
  const reading = slow.observe(null)[Symbol.asyncIterator]();
  await reading.next();
  cancelled.abort(new Error("over"));
  // The listings fail now, while nobody waits for them.
  await Bun.sleep(5);
  const rest = async () => {
    for (;;) if ((await reading.next()).done === true) return;
  };
  await expect(rest()).rejects.toThrow("over");
  expect(asked.length).toBeGreaterThan(before);
});

test("the recorded login is what is sent", async () => {
  let body = "";
  const { env } = recorded({
    replies: {
      [LOGIN]: async (request) => {
        body = (await request.text()).replace(PASSWORD, "<password>");
        return answered("keystone/auth-password-collector", new URL(request.url).origin);
      },
    },
  });
  await observe(env);
  expect(JSON.parse(body)).toEqual(recording("keystone/auth-password-collector").sent);
});
