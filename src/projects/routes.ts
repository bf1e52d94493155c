/** GET and POST /api/v1/projects, GET and PATCH of one, and its summary. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller, inScope } from "../access/callers.ts";
import { snapshot } from "../database/snapshot.ts";
import { ETAG_HEADER, NOT_MODIFIED, taggedAnswer } from "../http/etag.ts";
import { jsonAnswer, pageText } from "../http/json.ts";
import { roleNeeded } from "../http/needed.ts";
import { operation } from "../http/operation.ts";
import { after, encodeCursor, positionOf } from "../http/page.ts";
import { cursorParam, idParam, instantParam, limitParam, textParam } from "../http/parameters.ts";
import { refusal } from "../http/refusal.ts";
import type { Services } from "../http/services.ts";
import { Problem } from "../problem.ts";
import { projectJson, summaryJson } from "./answers.ts";
import { CREATE_PROJECT, PROJECT, SUMMARY } from "./examples.ts";
import { CreateProject, Project, ProjectList, ProjectSummary, UpdateProject } from "./model.ts";
import { findProject, type ProjectPosition, pageOfProjects } from "./queries.ts";
import { changeProject, createProject } from "./registry.ts";
import { MAX_EVENTS, summarize } from "./summary.ts";

const TAG = "Projects";
const params = Type.Object({ id: idParam("The project.") });

const listProjects = operation({
  id: "listProjects",
  tag: TAG,
  summary: "List the registered projects",
  description: "Takes a token of role read_all. By cloud and external_id.",
  security: "apiToken",
  query: Type.Object({
    platform: Type.Optional(textParam("Projects of this platform.")),
    cloud: Type.Optional(textParam("Projects of this cloud.")),
    external_id: Type.Optional(textParam("Projects that their clouds call this.")),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: {
      schema: ProjectList,
      description: "A page.",
      example: { items: [PROJECT], next_cursor: null },
      headers: ETAG_HEADER,
    },
    304: NOT_MODIFIED,
  },
  problems: [{ kind: "forbidden", detail: roleNeeded("read_all") }],
});

const registerProject = operation({
  id: "createProject",
  tag: TAG,
  summary: "Register a project",
  description:
    "Takes a token of role admin. A pair of cloud and external_id that is registered already is a 409; a virtual platform outside its own cloud, or metadata past its bound, a 422.",
  security: "apiToken",
  body: { schema: CreateProject, required: true, strict: true, example: CREATE_PROJECT },
  answers: {
    201: {
      schema: Project,
      description: "It is registered.",
      example: PROJECT,
      headers: { Location: "Where it is read." },
    },
  },
  problems: [
    { kind: "forbidden", detail: roleNeeded("admin") },
    { kind: "conflict", detail: "a project of this cloud has this external_id already" },
    {
      kind: "validation",
      status: 422,
      errors: [{ loc: "body.cloud", msg: 'must be "meta", like the platform of this virtual project' }],
    },
  ],
});

const getProject = operation({
  id: "getProject",
  tag: TAG,
  summary: "Read a project",
  description: "Takes a token of role read_all.",
  security: "apiToken",
  params,
  answers: {
    200: { schema: Project, description: "The project.", example: PROJECT, headers: ETAG_HEADER },
    304: NOT_MODIFIED,
  },
  problems: [{ kind: "forbidden", detail: roleNeeded("read_all") }, "not_found"],
});

const patchProject = operation({
  id: "updateProject",
  tag: TAG,
  summary: "Rename a project, or replace its metadata",
  description: "Takes a token of role admin. What identifies a project is never changed: naming it is a 400.",
  security: "apiToken",
  params,
  body: {
    schema: UpdateProject,
    required: true,
    strict: true,
    example: { name: PROJECT.name, metadata: PROJECT.metadata },
  },
  answers: { 200: { schema: Project, description: "The project as it is now.", example: PROJECT } },
  problems: [
    { kind: "forbidden", detail: roleNeeded("admin") },
    "not_found",
    {
      kind: "validation",
      status: 422,
      errors: [
        { loc: "body.metadata", msg: "is 65537 bytes as it would be stored, at most 65536 bytes are kept" },
      ],
    },
  ],
});

const getSummary = operation({
  id: "getProjectSummary",
  tag: TAG,
  summary: "Sum up what a project had within a window",
  description:
    "A token of role project reads the summaries of its projects; another project is a 404, like an unknown one. Minutes come from the intervals that the project owned, so a transfer moves them to the new owner; what was created and deleted stays with who created and deleted it. A window that ends before it begins holds nothing. Over 100,000 events of the resources that the project ever had are refused.",
  security: "apiToken",
  params,
  query: Type.Object({
    from: instantParam("The window's first instant."),
    to: instantParam("The first instant after the window."),
  }),
  answers: { 200: { schema: ProjectSummary, description: "The summary.", example: SUMMARY } },
  problems: [
    "not_found",
    { kind: "history_too_long", detail: `the project's resources have more than ${MAX_EVENTS} events` },
  ],
});

function projectPosition(cursor: string): ProjectPosition {
  const [cloud = "", externalId = ""] = positionOf("projects", cursor, 2);
  return { cloud, externalId };
}

/** @param project its JSON. */
function projectCursor(project: string): string {
  const { cloud, external_id: externalId }: { cloud: string; external_id: string } = JSON.parse(project);
  return encodeCursor("projects", [cloud, externalId]);
}

export function projectRoutes(services: Services) {
  const { db, now } = services;
  return new Elysia({ name: "projects" })
    .get(
      "/api/v1/projects",
      async ({ request }) => {
        await apiCaller(services, request, "read_all");
        const query = listProjects.readQuery(request);
        const filter = {
          platform: query.platform ?? null,
          cloud: query.cloud ?? null,
          externalId: query.external_id ?? null,
        };
        const page = { limit: query.limit, after: after(query.cursor, projectPosition) };
        const { items, last } = await pageOfProjects(db, filter, page);
        return taggedAnswer(request, pageText(items, last && projectCursor(last)));
      },
      listProjects.hook,
    )
    .post(
      "/api/v1/projects",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { text, value } = await registerProject.readBody(request);
        const { platform, cloud, external_id: externalId, name = null } = value;
        const project = await createProject(db, { platform, cloud, externalId, name }, text, actor);
        return jsonAnswer(projectJson(project), {
          status: 201,
          headers: { location: `/api/v1/projects/${project.id}` },
        });
      },
      registerProject.hook,
    )
    .get(
      "/api/v1/projects/:id",
      async ({ request }) => {
        await apiCaller(services, request, "read_all");
        const { id } = getProject.readParams(request);
        const project = await findProject(db, id);
        if (project === null) throw new Problem("not_found");
        return taggedAnswer(request, projectJson(project));
      },
      getProject.hook,
    )
    .patch(
      "/api/v1/projects/:id",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { text, value } = await patchProject.readBody(request);
        const { id } = patchProject.readParams(request);
        if (value.name === undefined && value.metadata === undefined) {
          throw refusal([{ loc: "body", msg: "must have name, metadata, or both" }]);
        }
        return jsonAnswer(projectJson(await changeProject(db, id, value.name ?? null, text, actor)));
      },
      patchProject.hook,
    )
    .get(
      "/api/v1/projects/:id/summary",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const { id } = getSummary.readParams(request);
        const window = getSummary.readQuery(request);
        const at = now();
        return await snapshot(db, async (tx) => {
          const project = await findProject(tx, id);
          if (project === null) throw new Problem("not_found");
          const pair = { cloud: project.cloud, projectId: project.externalId };
          // The same answer: who may not read it isn't told that it is there.
          if (!inScope(scope, pair)) throw new Problem("not_found");
          return jsonAnswer(summaryJson(project, await summarize(tx, pair, window, at)));
        });
      },
      getSummary.hook,
    );
}
