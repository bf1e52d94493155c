/** GET and POST /api/v1/projects/{id}/relations, PATCH and DELETE of one, and where they lead. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import { snapshot } from "../database/snapshot.ts";
import { jsonAnswer } from "../http/json.ts";
import { roleNeeded } from "../http/needed.ts";
import { operation } from "../http/operation.ts";
import { choiceParam, idParam, instantParam, integerParam, textParam } from "../http/parameters.ts";
import { refusal } from "../http/refusal.ts";
import type { Services } from "../http/services.ts";
import { Problem } from "../problem.ts";
import { relatedJson, relationJson } from "./answers.ts";
import { CREATE_RELATION, RELATED, RELATION } from "./examples.ts";
import { CreateRelation, RelatedProjectList, Relation, RelationList, UpdateRelation } from "./model.ts";
import { findProject } from "./queries.ts";
import { MAX_UNPAGED, relatedTo } from "./related.ts";
import { relationsOf } from "./relation-queries.ts";
import { changeRelation, closeRelation, createRelation } from "./relations.ts";

const TAG = "Projects";
const params = Type.Object({ id: idParam("The project.") });
const relationParams = Type.Object({
  id: idParam("The project that the relation leaves."),
  relation_id: idParam("The relation."),
});
const at = Type.Optional(instantParam("Relations that are valid at this instant; left out, now."));

const listRelations = operation({
  id: "listRelations",
  tag: TAG,
  summary: "List a project's relations",
  description: `Takes a token of role read_all. By created_at and id, all in one answer; over ${MAX_UNPAGED} are refused.`,
  security: "apiToken",
  params,
  query: Type.Object({
    direction: choiceParam(
      "Those that leave the project, those that lead to it, or both.",
      ["outgoing", "incoming", "both"],
      "both",
    ),
    relation_type: Type.Optional(textParam("Relations of this type.")),
    at,
  }),
  answers: { 200: { schema: RelationList, description: "The relations.", example: { items: [RELATION] } } },
  problems: [
    { kind: "forbidden", detail: roleNeeded("read_all") },
    "not_found",
    { kind: "result_too_large", detail: `the project has more than ${MAX_UNPAGED} such relations` },
  ],
});

const makeRelation = operation({
  id: "createRelation",
  tag: TAG,
  summary: "Relate a project to another one",
  description:
    "Takes a token of role admin. An open relation of the same type between the two is a 409; once it is closed, another one can be made. An attributing type may not lead back to where it comes from: relation_cycle. Violations of pricing_adjustments are told one by one, at `body.metadata.pricing_adjustments.<index>.<member>`.",
  security: "apiToken",
  params,
  body: { schema: CreateRelation, required: true, strict: true, example: CREATE_RELATION },
  answers: {
    201: {
      schema: Relation,
      description: "The relation is made.",
      example: RELATION,
      headers: { Location: "Where it is changed and closed." },
    },
  },
  problems: [
    { kind: "forbidden", detail: roleNeeded("admin") },
    "not_found",
    { kind: "conflict", detail: "an open relation of this type between the two is there already" },
    {
      kind: "validation",
      status: 422,
      errors: [
        {
          loc: "body.metadata.pricing_adjustments.0.rate",
          msg: "must be a decimal as a string, from 0 to 1, with at most six fractional digits",
        },
        { loc: "body.metadata.pricing_adjustments.1.scope", msg: "is required" },
      ],
    },
    {
      kind: "relation_cycle",
      detail: "the target's cost is attributed to it, over other relations, already",
    },
  ],
});

const patchRelation = operation({
  id: "updateRelation",
  tag: TAG,
  summary: "Close a relation at an instant, or replace its metadata",
  description: "Takes a token of role admin. A relation that doesn't leave this project is a 404.",
  security: "apiToken",
  params: relationParams,
  body: {
    schema: UpdateRelation,
    required: true,
    strict: true,
    example: { valid_to: "2026-06-30T22:00:00Z" },
  },
  answers: {
    200: {
      schema: Relation,
      description: "The relation as it is now.",
      example: { ...RELATION, valid_to: "2026-06-30T22:00:00Z" },
    },
  },
  problems: [
    { kind: "forbidden", detail: roleNeeded("admin") },
    "not_found",
    {
      kind: "conflict",
      detail:
        "pricing_adjustments are fixed: send them as they are stored, or close the relation and make another",
    },
    {
      kind: "validation",
      status: 422,
      errors: [{ loc: "body.valid_to", msg: `must be after valid_from, which is ${RELATION.valid_from}` }],
    },
  ],
});

const deleteRelation = operation({
  id: "closeRelation",
  tag: TAG,
  summary: "Close a relation now",
  description:
    "Takes a token of role admin. Nothing is removed: earlier instants keep the relation. One that is closed already stays as it is; one that hasn't begun to hold never will.",
  security: "apiToken",
  params: relationParams,
  answers: { 204: { description: "It is closed." } },
  problems: [{ kind: "forbidden", detail: roleNeeded("admin") }, "not_found"],
});

const listRelated = operation({
  id: "listRelatedProjects",
  tag: TAG,
  summary: "Follow a project's relations",
  description: `Takes a token of role read_all. Breadth first over outgoing relations, each project once, on the shortest way, and the start never. Over ${MAX_UNPAGED} projects are refused.`,
  security: "apiToken",
  params,
  query: Type.Object({
    depth: integerParam("How many relations to follow.", { minimum: 1, maximum: 10, preset: 1 }),
    relation_type: Type.Optional(textParam("Follow relations of this type only.")),
    at,
  }),
  answers: {
    200: { schema: RelatedProjectList, description: "The projects.", example: { items: [RELATED] } },
  },
  problems: [
    { kind: "forbidden", detail: roleNeeded("read_all") },
    "not_found",
    { kind: "result_too_large", detail: `the relations lead to more than ${MAX_UNPAGED} projects` },
  ],
});

async function known(db: Queryable, id: string): Promise<void> {
  if ((await findProject(db, id)) === null) throw new Problem("not_found");
}

export function relationRoutes(services: Services) {
  const { db, now, settings } = services;
  return new Elysia({ name: "relations" })
    .get(
      "/api/v1/projects/:id/relations",
      async ({ request }) => {
        await apiCaller(services, request, "read_all");
        const { id } = listRelations.readParams(request);
        const query = listRelations.readQuery(request);
        const filter = {
          direction: query.direction,
          relationType: query.relation_type ?? null,
          at: query.at ?? now(),
        };
        const rows = await snapshot(db, async (tx) => {
          await known(tx, id);
          return await relationsOf(tx, id, filter, MAX_UNPAGED + 1);
        });
        if (rows.length > MAX_UNPAGED) {
          throw new Problem("result_too_large", `the project has more than ${MAX_UNPAGED} such relations`);
        }
        return jsonAnswer(`{"items":[${rows.map(relationJson).join(",")}]}`);
      },
      listRelations.hook,
    )
    .post(
      "/api/v1/projects/:id/relations",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { text, value } = await makeRelation.readBody(request);
        const { id: sourceId } = makeRelation.readParams(request);
        const relation = await createRelation(
          db,
          {
            sourceId,
            targetId: value.target_id,
            relationType: value.relation_type,
            validFrom: value.valid_from ?? null,
          },
          { text, metadata: value.metadata },
          { actor, now: now(), attributingTypes: settings.attributingRelationTypes },
        );
        return jsonAnswer(relationJson(relation), {
          status: 201,
          headers: { location: `/api/v1/projects/${sourceId}/relations/${relation.id}` },
        });
      },
      makeRelation.hook,
    )
    .patch(
      "/api/v1/projects/:id/relations/:relation_id",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { text, value } = await patchRelation.readBody(request);
        const { id: sourceId, relation_id: id } = patchRelation.readParams(request);
        if (value.valid_to === undefined && value.metadata === undefined) {
          throw refusal([{ loc: "body", msg: "must have valid_to, metadata, or both" }]);
        }
        const changed = await changeRelation(db, { sourceId, id }, value.valid_to ?? null, text, actor);
        return jsonAnswer(relationJson(changed));
      },
      patchRelation.hook,
    )
    .delete(
      "/api/v1/projects/:id/relations/:relation_id",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { id: sourceId, relation_id: id } = deleteRelation.readParams(request);
        await closeRelation(db, { sourceId, id }, now(), actor);
        return new Response(null, { status: 204 });
      },
      deleteRelation.hook,
    )
    .get(
      "/api/v1/projects/:id/related",
      async ({ request }) => {
        await apiCaller(services, request, "read_all");
        const { id } = listRelated.readParams(request);
        const query = listRelated.readQuery(request);
        const walk = {
          depth: query.depth,
          relationType: query.relation_type ?? null,
          at: query.at ?? now(),
        };
        const reached = await snapshot(db, async (tx) => {
          await known(tx, id);
          return await relatedTo(tx, id, walk);
        });
        return jsonAnswer(`{"items":[${reached.map(relatedJson).join(",")}]}`);
      },
      listRelated.hook,
    );
}
