import { describe, expect, test } from "bun:test";
import { bearerToken, hasFormOf, newToken, sameSecret, tokenSha256 } from "../../src/access/tokens.ts";

const digits = "0123456789abcdef".repeat(4);

describe("tokens", () => {
  test("are a prefix and 64 hex digits of the randomness", () => {
    const bytes = (count: number) => new Uint8Array(count).fill(0xab);
    expect(newToken("ingest", bytes)).toBe(`tly_i_${"ab".repeat(32)}`);
    expect(newToken("api", bytes)).toBe(`tly_a_${"ab".repeat(32)}`);
  });

  test("never come twice", () => {
    const made = new Set(Array.from({ length: 1_000 }, () => newToken("api")));
    expect(made.size).toBe(1_000);
  });

  test("of one kind have not the form of the other", () => {
    expect(hasFormOf("ingest", `tly_i_${digits}`)).toBe(true);
    expect(hasFormOf("api", `tly_i_${digits}`)).toBe(false);
    expect(hasFormOf("api", `tly_a_${digits}`)).toBe(true);
    expect(hasFormOf("ingest", `tly_a_${digits}`)).toBe(false);
    expect(hasFormOf("api", `tly_a_${digits.toUpperCase()}`)).toBe(false);
    expect(hasFormOf("api", `tly_a_${digits}0`)).toBe(false);
    expect(hasFormOf("api", `tly_a_${digits}\n`)).toBe(false);
  });

  test("are kept as their SHA-256", () => {
    // The first example of FIPS 180-4.
    expect(tokenSha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });

  test("secrets are the same only when every character is", () => {
    expect(sameSecret("secret", "secret")).toBe(true);
    expect(sameSecret("secret", "secreT")).toBe(false);
    expect(sameSecret("secret", "secret ")).toBe(false);
    expect(sameSecret("", "secret")).toBe(false);
  });
});

describe("the Authorization header", () => {
  test.each([
    ["Bearer abc", "abc"],
    ["bearer abc", "abc"],
    ["BEARER   abc", "abc"],
    ["Bearer a-._~+/9==", "a-._~+/9=="],
    // An operator's own choice: whatever TALLY_REPORTING_INTERNAL_TOKEN takes, the header carries.
    ["Bearer pa=s:w!o@r{d},~", "pa=s:w!o@r{d},~"],
  ])("%p holds a token", (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });

  test.each([
    null,
    "",
    "Bearer",
    "Bearer ",
    "abc",
    "Basic abc",
    "Bearer abc def",
    "Bearer abc, Bearer def",
    "Bearer\tabc",
    "Bearer abc ",
    " Bearer abc",
    "Bearerabc",
    "Bearer äbc",
    "Bearer a\u007fb",
  ])("%p holds none", (header) => {
    expect(bearerToken(header)).toBeNull();
  });
});
