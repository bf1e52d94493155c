/** /openapi.json, and /docs: a page to read the API and try it. Every asset is in the executable. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import favicon from "swagger-ui-dist/favicon-32x32.png" with { type: "file" };
import styles from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import bundle from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import { version } from "../../package.json";
import page from "./docs-page/page.html" with { type: "text" };
import start from "./docs-page/start.txt" with { type: "text" };
import { jsonAnswer } from "./json.ts";
import { operation } from "./operation.ts";

const getDocument = operation({
  id: "getOpenApiDocument",
  tag: "Operation",
  summary: "This document",
  security: null,
  answers: {
    200: {
      schema: Type.Unsafe({ type: "object" }),
      description: "OpenAPI 3.1.",
      example: {
        openapi: "3.1.0",
        info: { title: "Tally Reporting API", version },
        paths: {},
        components: {},
      },
    },
  },
});

const getPage = operation({
  id: "getDocumentationPage",
  tag: "Operation",
  summary: "A page to read and try the API",
  description: "Works without the internet.",
  security: null,
  answers: {
    200: {
      schema: Type.String(),
      contentType: "text/html",
      description: "The page.",
      example: "<!doctype html><title>Tally Reporting API</title>",
    },
  },
});

/**
 * The page's own scripts and styles, and requests to this very server; nothing else. The page sets style
 * attributes from its script, which needs 'unsafe-inline' for styles; its icons are data: addresses.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The page's assets: name below /docs/ → what it is. They change with the executable only. */
const ASSETS = {
  "swagger-ui-bundle.js": { type: "text/javascript; charset=utf-8", body: () => Bun.file(bundle) },
  "swagger-ui.css": { type: "text/css; charset=utf-8", body: () => Bun.file(styles) },
  "favicon.png": { type: "image/png", body: () => Bun.file(favicon) },
  "start.js": { type: "text/javascript; charset=utf-8", body: () => start },
} as const;

/** @param document the document's JSON text, once it is made. */
export function docsRoutes(document: Promise<string>) {
  const routes = new Elysia({ name: "docs" })
    .get(
      "/openapi.json",
      async ({ request }) => {
        getDocument.readQuery(request);
        return jsonAnswer(await document);
      },
      getDocument.hook,
    )
    .get(
      "/docs",
      ({ request }) => {
        getPage.readQuery(request);
        return new Response(String(page), {
          headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": PAGE_POLICY },
        });
      },
      getPage.hook,
    );
  for (const [name, { type, body }] of Object.entries(ASSETS)) {
    routes.get(
      `/docs/${name}`,
      async () => {
        const content = body();
        return new Response(typeof content === "string" ? content : await content.bytes(), {
          headers: { "content-type": type, "cache-control": "public, max-age=3600" },
        });
      },
      { parse: "none", detail: { hide: true } },
    );
  }
  return routes;
}
