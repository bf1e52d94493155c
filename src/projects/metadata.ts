/**
 * The free-form documents of projects and relations. One is stored, and bounded, as the database normalizes it:
 * `1e5` is six bytes, white space and doubled members are none.
 */
import type { Queryable } from "../database/connection.ts";
import { faultOf, sqlStateOf } from "../database/faults.ts";
import { measure, memberText } from "../event/json-text.ts";
import { refusal } from "../http/refusal.ts";
import type { Problem } from "../problem.ts";
import { normalizedDocument } from "./queries.ts";

/** The largest document, in bytes of its normalized text. */
export const MAX_METADATA_BYTES = 65_536;
/**
 * The database is not asked to write out more than this: `1e131071` is eight bytes that become 131,072, and a
 * body of 32 MiB full of them would be half a terabyte. Only a document whose members overwrite each other a
 * thousand times could be over this and yet within the bound.
 */
const MAX_WRITTEN_BYTES = 64 * 1024 * 1024;

/** A document as it will be stored. */
export interface Metadata {
  /** JSON text as the database writes it. */
  readonly text: string;
  /** The same of its member `pricing_adjustments`; null where it has none. */
  readonly adjustments: string | null;
}

/** What a project or relation without metadata holds. */
export const NO_METADATA: Metadata = { text: "{}", adjustments: null };

/**
 * The request's `metadata`, normalized by the database.
 * @param body the request's JSON text; every digit comes from it.
 * @returns null where the body has none.
 * @throws Problem validation, 422, for a document past the bound or one that the database can't hold.
 */
export async function metadataOf(db: Queryable, body: string): Promise<Metadata | null> {
  const text = memberText(body, "metadata");
  if (text === null) return null;
  const { overflow, growth } = measure(text);
  if (overflow !== null) throw refused(`holds a number that cannot be stored: ${overflow}`);
  if (text.length + growth > MAX_WRITTEN_BYTES) throw tooLarge();
  try {
    const document = await normalizedDocument(db, text, MAX_METADATA_BYTES);
    if (document.text === null) throw tooLarge(document.bytes);
    return { text: document.text, adjustments: document.adjustments };
  } catch (error) {
    // A member that another of its name hides may hold one: those that count have been looked at.
    const state = sqlStateOf(error);
    if (state === "22P02" || state === "22P05")
      throw refused("holds a character that cannot be stored, in a member that is there twice", error);
    // What is left: nested deeper than the database's stack, larger than its values may be.
    if (faultOf(error) === "data")
      throw refused("cannot be stored: it is nested too deep, or too large", error);
    throw error;
  }
}

function tooLarge(bytes?: number): Problem {
  const much = bytes === undefined ? "far more" : `${bytes} bytes`;
  return refused(`is ${much} as it would be stored, at most ${MAX_METADATA_BYTES} bytes are kept`);
}

function refused(msg: string, cause?: unknown): Problem {
  return refusal([{ loc: "body.metadata", msg }], { status: 422, cause });
}
