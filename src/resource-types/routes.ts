/** GET and PUT /api/v1/resource-types…. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller } from "../access/callers.ts";
import { VIRTUAL_PLATFORMS } from "../event/bounds.ts";
import { formatInstant } from "../event/instant.ts";
import { memberText } from "../event/json-text.ts";
import { ETAG_HEADER, NOT_MODIFIED, taggedAnswer } from "../http/etag.ts";
import { jsonAnswer, pageText } from "../http/json.ts";
import { roleNeeded } from "../http/needed.ts";
import { operation } from "../http/operation.ts";
import { textParam } from "../http/parameters.ts";
import { refusal } from "../http/refusal.ts";
import type { Services } from "../http/services.ts";
import { Problem } from "../problem.ts";
import { RegisterResourceType, ResourceType, ResourceTypeList } from "./model.ts";
import { findType, listTypes, type RegisteredType } from "./queries.ts";
import { MAX_DOCUMENT_BYTES, registerType, tooLargeDetail } from "./register.ts";

const EXAMPLE = {
  platform: "openstack",
  resource_type: "volume",
  size_schema: {
    type: "object",
    required: ["size_gb", "type"],
    properties: { size_gb: { type: "number", exclusiveMinimum: 0 }, type: { type: "string" } },
  },
  updated_at: "2026-03-01T08:00:00.25Z",
};

const params = Type.Object({
  platform: textParam("The platform that the type belongs to."),
  resource_type: textParam("The type's name on that platform."),
});

const listResourceTypes = operation({
  id: "listResourceTypes",
  tag: "Resource types",
  summary: "List the registered resource types",
  security: "apiToken",
  answers: {
    200: {
      schema: ResourceTypeList,
      description: "All of them, in one answer.",
      example: { items: [EXAMPLE], next_cursor: null },
      headers: ETAG_HEADER,
    },
    304: NOT_MODIFIED,
  },
});

const getResourceType = operation({
  id: "getResourceType",
  tag: "Resource types",
  summary: "Read what a type's sizes are held to",
  security: "apiToken",
  params,
  answers: {
    200: { schema: ResourceType, description: "The registration.", example: EXAMPLE, headers: ETAG_HEADER },
    304: NOT_MODIFIED,
  },
  problems: ["not_found"],
});

const registerResourceType = operation({
  id: "registerResourceType",
  tag: "Resource types",
  summary: "Register what a type's sizes are held to",
  description:
    "Takes a token of role admin. The document is JSON Schema draft 2020-12 of at most 64 KiB, kept as it is sent. What can't be enforced whole is refused with the reason: a `$ref` out of the document, dynamic references, a `$id` inside the document, `unevaluatedItems`, a `format` other than date-time, date, time, uuid, ipv4, ipv6, json-pointer and relative-json-pointer, a `pattern` that looks around or back. Formats are enforced; unknown keywords are annotations. The next ingested event, in any process on the same database, is held to it; stored events stay as they are.",
  security: "apiToken",
  params,
  body: {
    schema: RegisterResourceType,
    required: true,
    strict: true,
    example: { size_schema: EXAMPLE.size_schema },
  },
  answers: { 200: { schema: ResourceType, description: "It is in force.", example: EXAMPLE } },
  problems: [
    { kind: "forbidden", detail: roleNeeded("admin") },
    { kind: "payload_too_large", detail: tooLargeDetail(MAX_DOCUMENT_BYTES + 1) },
  ],
});

function typeJson({ platform, resourceType, sizeSchema, updatedAt }: RegisteredType): string {
  return (
    `{"platform":${JSON.stringify(platform)},"resource_type":${JSON.stringify(resourceType)}` +
    `,"size_schema":${sizeSchema},"updated_at":"${formatInstant(updatedAt)}"}`
  );
}

export function resourceTypeRoutes(services: Services) {
  const { db } = services;
  return new Elysia({ name: "resource-types" })
    .get(
      "/api/v1/resource-types",
      async ({ request }) => {
        await apiCaller(services, request, "project");
        listResourceTypes.readQuery(request);
        return taggedAnswer(request, pageText((await listTypes(db)).map(typeJson).join(","), null));
      },
      listResourceTypes.hook,
    )
    .get(
      "/api/v1/resource-types/:platform/:resource_type",
      async ({ request }) => {
        await apiCaller(services, request, "project");
        const { platform, resource_type } = getResourceType.readParams(request);
        const found = await findType(db, { platform, resourceType: resource_type });
        if (found === null) throw new Problem("not_found");
        return taggedAnswer(request, typeJson(found));
      },
      getResourceType.hook,
    )
    .put(
      "/api/v1/resource-types/:platform/:resource_type",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { text } = await registerResourceType.readBody(request);
        const { platform, resource_type } = registerResourceType.readParams(request);
        if (VIRTUAL_PLATFORMS.has(platform)) {
          throw refusal([
            {
              loc: "path.platform",
              msg: `"${platform}" is a virtual platform, which never carries resources`,
            },
          ]);
        }
        const document = memberText(text, "size_schema");
        if (document === null) throw refusal([{ loc: "body.size_schema", msg: "is required" }]);
        const key = { platform, resourceType: resource_type };
        return jsonAnswer(typeJson(await registerType(db, key, document, actor)));
      },
      registerResourceType.hook,
    );
}
