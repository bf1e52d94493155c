/** A server of a few made-up routes in the real envelope, for the rules that hold for every route. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { type AppOptions, assemble } from "../../src/http/frame.ts";
import { type JsonText, jsonAnswer } from "../../src/http/json.ts";
import { type Listening, listen } from "../../src/http/listen.ts";
import { operation } from "../../src/http/operation.ts";
import {
  choiceParam,
  cursorParam,
  instantParam,
  limitParam,
  namesParam,
  textParam,
  uuidParam,
} from "../../src/http/parameters.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";

const answers = { 200: { description: "Fine." } };
const common = { tag: "Operation", summary: "For a test", security: null, answers } as const;

const list = operation({
  ...common,
  id: "list",
  query: Type.Object({
    name: Type.Optional(textParam("A name.")),
    from: Type.Optional(instantParam("From then on.")),
    status: choiceParam("Which ones.", ["active", "deleted", "all"], "active"),
    group_by: Type.Optional(namesParam("By what.", ["cloud", "state"])),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
});
const needs = operation({ ...common, id: "needs", query: Type.Object({ to: instantParam("Until then.") }) });
const plain = operation({ ...common, id: "plain" });
const thing = operation({
  ...common,
  id: "thing",
  params: Type.Object({ cloud: textParam("The cloud."), id: textParam("The id.") }),
});
const byUuid = operation({ ...common, id: "byUuid", params: Type.Object({ id: uuidParam("The id.") }) });
const raw = operation({
  ...common,
  id: "raw",
  body: { schema: Type.Unknown(), required: true, strict: false },
});
const strict = operation({
  ...common,
  id: "strict",
  query: Type.Object({ limit: limitParam }),
  body: {
    schema: Type.Object({
      name: textParam("A name."),
      at: Type.Optional(instantParam("When.")),
      count: Type.Optional(Type.Integer({ minimum: 1 })),
      note: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      metadata: Type.Optional(Type.Unsafe<object>({ type: "object" })),
      parts: Type.Optional(Type.Array(Type.Object({ size: Type.Number() }))),
    }),
    required: true,
    strict: true,
  },
});
const optional = operation({
  ...common,
  id: "optional",
  body: {
    schema: Type.Object({ cloud: Type.Optional(textParam("A cloud.")) }),
    required: false,
    strict: true,
    maxBytes: 1_000,
  },
});

/** Instants as the text of their microseconds, so that a test sees exactly what was read. */
function shown(value: unknown): Response {
  return jsonAnswer(JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}` : part)));
}

/** What `GET /large?characters=…` answers: a JSON text of so many characters, of which some take two bytes, three or four. */
export function largeText(characters: number): string {
  return JSON.stringify("界012345ü💾".repeat(Math.ceil(characters / 10)).slice(0, characters - 2));
}

/** A text in three pieces, of which the large one is bytes, as a page's are. */
function inPieces(text: string): JsonText {
  return [text.slice(0, 1), Buffer.from(text.slice(1, -1)), text.slice(-1)];
}

/** A running small app. */
export interface SmallApp extends Listening {
  readonly logged: Record<string, unknown>[];
  readonly metrics: ReturnType<typeof createMetrics>;
  request(path: string, init?: RequestInit): Promise<Response>;
}

/** Starts it. @param fail what GET /fails throws. */
export function smallApp(fail: () => unknown = () => new Error("on purpose")): SmallApp {
  const logged: Record<string, unknown>[] = [];
  const options: AppOptions = {
    log: createLogger("DEBUG", (line) => logged.push(JSON.parse(line))),
    metrics: createMetrics(),
  };
  const routes = new Elysia()
    .get("/list", ({ request }) => shown(list.readQuery(request)), list.hook)
    .get("/needs", ({ request }) => shown(needs.readQuery(request)), needs.hook)
    .get("/plain", ({ request }) => shown(plain.readQuery(request)), plain.hook)
    .post("/bare", ({ request }) => shown(plain.readQuery(request)), plain.hook)
    .get("/things/:cloud/:id", ({ request }) => shown(thing.readParams(request)), thing.hook)
    .get("/uuids/:id", ({ request }) => shown(byUuid.readParams(request)), byUuid.hook)
    .get("/fails", () => {
      throw fail();
    })
    .get("/slow", async ({ request }) => {
      options.log.info("working");
      await Bun.sleep(Number(new URL(request.url).searchParams.get("ms")));
      options.log.info("worked");
      return new Response("done");
    })
    .get("/large", async ({ request }) => {
      await Bun.sleep(1);
      const query = new URL(request.url).searchParams;
      const text = largeText(Number(query.get("characters")));
      return jsonAnswer(query.has("pieces") ? inPieces(text) : text);
    })
    .put("/things/:cloud/:id", () => new Response("put"))
    .post(
      "/raw",
      async ({ request }) => {
        const { text, value } = await raw.readBody(request);
        return shown({ length: text.length, start: text.slice(0, 40), type: typeof value });
      },
      raw.hook,
    )
    .post("/strict", async ({ request }) => shown(await strict.readBody(request)), strict.hook)
    .post("/optional", async ({ request }) => shown(await optional.readBody(request)), optional.hook)
    .post("/unread", () => new Response("never looked"));
  const app = assemble(routes, options);
  const listening = listen(app, { host: "127.0.0.1", port: 0 });
  return {
    ...listening,
    logged,
    metrics: options.metrics,
    request: (path, init) => fetch(`${listening.url}${path}`, init),
  };
}

/** POSTs JSON, or whatever `init` says. */
export function post(
  body: NonNullable<RequestInit["body"]>,
  headers: Record<string, string> = {},
): RequestInit {
  return { method: "POST", body, headers: { "content-type": "application/json", ...headers } };
}

/** A refused request's faults. */
export async function faults(answer: Response): Promise<unknown> {
  const body: Record<string, unknown> = JSON.parse(await answer.text());
  return { status: answer.status, type: body.type, errors: body.errors };
}

/** What a 400 with these faults looks like. */
export function refused(...errors: [loc: string, msg: string][]) {
  return {
    status: 400,
    type: "urn:tally:error:validation",
    errors: errors.map(([loc, msg]) => ({ loc, msg })),
  };
}
