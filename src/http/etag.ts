/** Answers that a reader may already have: `ETag` and `If-None-Match` (RFC 9110, 8.8.3 and 13.1.2). */
import { type JsonText, jsonAnswer, piecesOf } from "./json.ts";

/** What an operation with tags says of them in the document: spread it into its answers' 200 and 304. */
export const ETAG_HEADER = {
  ETag: "Hand it back in `If-None-Match` to be told 304, with no body, while the answer would be the same.",
};

/** The 304 of an operation with tags. */
export const NOT_MODIFIED = {
  description: "What the caller has, by its `If-None-Match`, is still what would be answered.",
  headers: ETAG_HEADER,
};

/**
 * JSON text as an answer with its strong ETag, made from its bytes: equal pieces, equal tag. It is no secret and no
 * signature, so that a quick hash serves: what only admins write needs no guard against made-up collisions. Where the
 * request's `If-None-Match` names that tag, or `*`, it is a 304 without a body instead.
 */
export function taggedAnswer(request: Request, text: JsonText): Response {
  const hashes = piecesOf(text).map((piece) => Bun.hash.xxHash3(piece).toString(36));
  const etag = `"${hashes.join(".")}"`;
  if (holds(request.headers.get("if-none-match"), etag))
    return new Response(null, { status: 304, headers: { etag } });
  return jsonAnswer(text, { headers: { etag } });
}

/** One tag of a list. A weak one names the same bytes: `If-None-Match` compares weakly. */
const TAG = /\s*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)/y;

/** Whether an `If-None-Match` names the tag. A header that is no list of tags names none. */
function holds(header: string | null, etag: string): boolean {
  if (header === null) return false;
  if (header.trim() === "*") return true;
  const tags: string[] = [];
  TAG.lastIndex = 0;
  while (TAG.lastIndex < header.length) {
    const [, tag] = TAG.exec(header) ?? [];
    if (tag === undefined) return false;
    tags.push(tag);
  }
  return tags.includes(etag);
}
