/** The page of the API works without the internet. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

/** What the page loads, as a browser at /docs would resolve it. */
function assetsOf(html: string): string[] {
  return [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(
    ([, address]) => new URL(address ?? "", `${server.url}/docs`).href,
  );
}

describe("/docs", () => {
  test("is a page that loads from this server alone", async () => {
    const answer = await server.request("/docs");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const html = await answer.text();
    expect(html).not.toMatch(/https?:\/\//);
    expect(html).not.toMatch(/<script>|<style|\son\w+=|style=/);
    expect(assetsOf(html)).toEqual(
      ["favicon.png", "swagger-ui.css", "swagger-ui-bundle.js", "start.js"].map(
        (name) => `${server.url}/docs/${name}`,
      ),
    );
  });

  test("forbids the browser to load anything else", async () => {
    const policy = (await server.request("/docs")).headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("http");
  });

  const assets: [name: string, type: string, atLeast: number][] = [
    ["swagger-ui-bundle.js", "text/javascript; charset=utf-8", 1_000_000],
    ["swagger-ui.css", "text/css; charset=utf-8", 100_000],
    ["favicon.png", "image/png", 500],
    ["start.js", "text/javascript; charset=utf-8", 100],
  ];
  test.each(assets)("%s is served", async (name, type, atLeast) => {
    const answer = await server.request(`/docs/${name}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("x-request-id")).not.toBeNull();
    expect((await answer.bytes()).byteLength).toBeGreaterThan(atLeast);
  });

  test("starts on this server's document, and sends it to no validator", async () => {
    const script = await (await server.request("/docs/start.js")).text();
    expect(script).toContain('url: "openapi.json"');
    expect(script).toContain("validatorUrl: null");
    expect(script).not.toMatch(/https?:\/\//);
  });

  test("has styles that load nothing", async () => {
    const css = await (await server.request("/docs/swagger-ui.css")).text();
    expect(css.match(/url\((?!["']?data:).{0,40}|@import.{0,40}/g)).toBeNull();
  });

  test("has nothing else below it", async () => {
    for (const path of ["/docs/", "/docs/index.html", "/docs/../package.json", "/docs/%2e%2e/package.json"]) {
      expect((await server.request(path)).status).toBe(404);
    }
  });
});
