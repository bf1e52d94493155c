/**
 * The stream: NDJSON in zstd, one frame a block, which `zstd -d` reads too. Its lines, in this order:
 *
 *     {"tally":"export","format":1,"schema":9,"made_by":"0.1.0","at":"…","resources":…,"tables":[{"name":…,"rows":…,"columns":…},…]}
 *     {"block":1,"table":"projects","rows":2,"bytes":480,"sha256":"…"}     and that many rows, as many bytes
 *     …
 *     {"end":true,"blocks":…,"tables":{"projects":{"rows":2,"sum":"…"},…},"header_sha256":"…","sha256":"…"}
 *
 * Each block's SHA-256 goes over the one before it, the table's name and the rows' bytes, so that a block that was
 * changed, lost, doubled or moved is found before anything of it is used. The last one goes over all of it. A sum is
 * that of `Lines`, as 16 hex digits: what a database holds can be compared with it in whatever order it is read.
 */
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { CarriedTable } from "./tables.ts";

/** What this Tally writes, and the newest that it reads. */
export const FORMAT = 1;

const Name = Type.String({ minLength: 1 });
const Count = Type.Integer({ minimum: 0 });
const Digest = Type.String({ pattern: "^[0-9a-f]{64}$" });

const Header = Type.Object({
  tally: Type.Literal("export"),
  format: Type.Integer({ minimum: 1 }),
  schema: Type.Integer({ minimum: 1 }),
  made_by: Type.String(),
  at: Type.String(),
  resources: Count,
  tables: Type.Array(
    Type.Object({
      name: Name,
      rows: Count,
      columns: Type.Array(Type.Object({ name: Name, type: Name }), { minItems: 1 }),
    }),
  ),
});

const BlockLine = Type.Object({
  block: Type.Integer({ minimum: 1 }),
  table: Name,
  rows: Type.Integer({ minimum: 1 }),
  // Twice what a database can hold in one field.
  bytes: Type.Integer({ minimum: 1, maximum: 2 ** 31 }),
  sha256: Digest,
});

const End = Type.Object({
  end: Type.Literal(true),
  blocks: Count,
  tables: Type.Record(
    Type.String(),
    Type.Object({ rows: Count, sum: Type.String({ pattern: "^[0-9a-f]{16}$" }) }),
  ),
  header_sha256: Digest,
  sha256: Digest,
});

/** What a stream says of itself before its rows. */
export interface StreamHeader {
  readonly format: number;
  /** The newest migration of the database that it was made from. */
  readonly schema: number;
  /** The version of the Tally that made it. */
  readonly madeBy: string;
  /** The instant of its snapshot, RFC 3339. */
  readonly at: string;
  /** How many resources the source had rows of: what an import will fold, give or take what damage did. */
  readonly resources: number;
  readonly tables: readonly (CarriedTable & { readonly rows: number })[];
}

/** What a table held: how many rows, and the sum over them. */
export interface TableContent {
  readonly rows: number;
  /** 16 hex digits. */
  readonly sum: string;
}

/** The line before a block's rows. */
export interface BlockHead {
  /** From 1. */
  readonly block: number;
  readonly table: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** The last line. */
export interface StreamEnd {
  readonly blocks: number;
  readonly tables: ReadonlyMap<string, TableContent>;
  readonly headerSha256: string;
  readonly sha256: string;
}

export function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const part of parts) hasher.update(part);
  return hasher.digest("hex");
}

/**
 * What the first block's SHA-256 goes over. The header's instant is no part of it: two streams of one unchanged
 * database have the same blocks, and an import that one of them began can go on with the other.
 */
export function firstLink({ format, schema }: Pick<StreamHeader, "format" | "schema">): string {
  return sha256(`tally export, format ${format}, schema ${schema}`);
}

export function nextLink(link: string, table: string, bytes: Uint8Array): string {
  return sha256(link, table, "\n", bytes);
}

export function formatSum(sum: bigint): string {
  return BigInt.asUintN(64, sum).toString(16).padStart(16, "0");
}

export function headerLine({ format, schema, madeBy, at, resources, tables }: StreamHeader): string {
  return JSON.stringify({
    tally: "export",
    format,
    schema,
    made_by: madeBy,
    at,
    resources,
    tables: tables.map(({ name, rows, columns }) => ({ name, rows, columns })),
  });
}

export function blockLine({ block, table, rows, bytes, sha256: digest }: BlockHead): string {
  return JSON.stringify({ block, table, rows, bytes, sha256: digest });
}

/** The last line, signed over by the link of the last block. */
export function endLine(end: Omit<StreamEnd, "sha256">, link: string): string {
  const members = {
    end: true,
    blocks: end.blocks,
    tables: Object.fromEntries(end.tables),
    header_sha256: end.headerSha256,
  };
  return JSON.stringify({ ...members, sha256: sha256(link, JSON.stringify(members)) });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Null for a line that is no header. */
export function readHeader(line: string): StreamHeader | null {
  const value = parsed(line);
  if (!Value.Check(Header, value)) return null;
  const { format, schema, made_by: madeBy, at, resources, tables } = value;
  return { format, schema, madeBy, at, resources, tables };
}

/** Null for a line that begins no block. */
export function readBlockLine(line: string): BlockHead | null {
  const value = parsed(line);
  return Value.Check(BlockLine, value) ? value : null;
}

/** Null for a line that is no end. */
export function readEnd(line: string): StreamEnd | null {
  const value = parsed(line);
  if (!Value.Check(End, value)) return null;
  const { blocks, tables, header_sha256: headerSha256, sha256: digest } = value;
  return { blocks, tables: new Map(Object.entries(tables)), headerSha256, sha256: digest };
}
