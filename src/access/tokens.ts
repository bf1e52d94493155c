/**
 * Bearer tokens: how they look, how one is made, and what of it is kept. Only the SHA-256 of a token is ever
 * stored: 256 random bits need no salt and no slow hash, nobody can guess them.
 */
import { timingSafeEqual } from "node:crypto";

/** The two kinds of token that Tally issues; the internal token is a setting and of any form. */
export type TokenKind = "ingest" | "api";

const PREFIXES = { ingest: "tly_i_", api: "tly_a_" } as const satisfies Record<TokenKind, string>;
const RANDOM_BYTES = 32;

/** Gives that many unpredictable bytes. */
export type Randomness = (bytes: number) => Uint8Array;

const secureRandomness: Randomness = (bytes) => crypto.getRandomValues(new Uint8Array(bytes));

/** A fresh token: `tly_i_` or `tly_a_` and 64 hex digits. It is shown once and never stored. */
export function newToken(kind: TokenKind, randomness: Randomness = secureRandomness): string {
  return PREFIXES[kind] + Buffer.from(randomness(RANDOM_BYTES)).toString("hex");
}

/** Whether the text has the form of a token of that kind; one of another kind never does. */
export function hasFormOf(kind: TokenKind, token: string): boolean {
  return token.startsWith(PREFIXES[kind]) && /^[0-9a-f]{64}$/.test(token.slice(PREFIXES[kind].length));
}

/** The SHA-256 of a token in hex: what is stored and what is looked up. */
export function tokenSha256(token: string): string {
  return new Bun.CryptoHasher("sha256").update(token).digest("hex");
}

/** Compares two secrets in a time that tells nothing about them, not even their lengths. */
export function sameSecret(a: string, b: string): boolean {
  const digest = (secret: string) => new Bun.CryptoHasher("sha256").update(secret).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/**
 * The token of an `Authorization: Bearer …` header: the scheme in any case, then exactly one token. Any visible ASCII
 * is taken, more than RFC 6750 has: an operator may choose such an internal token, and the setting takes it.
 * @returns null where the header is absent, of another scheme, or holds anything but one token. A header sent
 *   twice arrives joined by a comma and a space, which no token holds.
 */
export function bearerToken(header: string | null): string | null {
  return header === null ? null : (/^bearer +([!-~]+)$/i.exec(header)?.[1] ?? null);
}
