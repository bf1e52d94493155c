/** Relations between projects: made, changed, closed. Nothing is ever removed, and each write has its audit row. */
import { writeAudit } from "../access/audit.ts";
import type { Database, Transaction } from "../database/connection.ts";
import { transaction } from "../database/transaction.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import { type FieldError, Problem } from "../problem.ts";
import { adjustmentFaults } from "./adjustments.ts";
import { metadataOf, NO_METADATA } from "./metadata.ts";
import { findProject } from "./queries.ts";
import {
  insertRelation,
  leadsTo,
  lockAttribution,
  lockRelation,
  type RelationRow,
  updateRelation,
} from "./relation-queries.ts";

/** A relation to make. */
export interface RelationToMake {
  readonly sourceId: string;
  readonly targetId: string;
  readonly relationType: string;
  /** Null: from `now` on. */
  readonly validFrom: Instant | null;
}

/** What making one takes. */
export interface Making {
  readonly actor: string;
  readonly now: Instant;
  /** Relations of these types attribute cost, and never form a cycle. */
  readonly attributingTypes: readonly string[];
}

/**
 * Makes a relation.
 *
 * One of an attributing type is refused where it would close a cycle of open relations of those types: cost would go
 * round for ever. Two that are made at once can't close one together.
 * @param body the request's JSON text, and `metadata` what stands in it, parsed.
 * @throws Problem not_found for an unknown source; validation, 422, for the target, the metadata and its
 *   pricing_adjustments; conflict where an open one stands between the two; relation_cycle.
 */
export async function createRelation(
  db: Database,
  wanted: RelationToMake,
  body: { readonly text: string; readonly metadata: object | undefined },
  { actor, now, attributingTypes }: Making,
): Promise<RelationRow> {
  const { sourceId, targetId, relationType } = wanted;
  return await transaction(db, async (tx) => {
    if ((await findProject(tx, sourceId)) === null) throw new Problem("not_found");
    if (targetId === sourceId) throw refused([{ loc: "body.target_id", msg: "is the project itself" }]);
    if ((await findProject(tx, targetId)) === null) {
      throw refused([{ loc: "body.target_id", msg: "is no registered project" }]);
    }
    const metadata = (await metadataOf(tx, body.text)) ?? NO_METADATA;
    if (body.metadata !== undefined && "pricing_adjustments" in body.metadata) {
      const faults = adjustmentFaults(body.metadata.pricing_adjustments);
      if (faults.length > 0) throw refused(faults);
    }
    const attributing = attributingTypes.includes(relationType);
    if (attributing) await lockAttribution(tx);
    if (attributing && (await leadsTo(tx, targetId, sourceId, attributingTypes))) {
      throw new Problem(
        "relation_cycle",
        "the target's cost is attributed to it, over other relations, already",
      );
    }
    const made = await insertRelation(tx, {
      sourceId,
      targetId,
      relationType,
      validFrom: wanted.validFrom ?? now,
      metadata: metadata.text,
      createdAt: now,
    });
    if (made === null) {
      throw new Problem("conflict", "an open relation of this type between the two is there already");
    }
    await audit(tx, actor, "project_relation.create", made.id, {
      source_id: sourceId,
      target_id: targetId,
      relation_type: relationType,
      valid_from: formatInstant(made.validFrom),
      metadata: made.metadata,
    });
    return made;
  });
}

/**
 * Changes a relation that leaves the project: its end, its metadata, or both.
 * @param validTo null leaves it; an open relation is closed there, a closed one's instant corrected.
 * @param body the request's JSON text; its metadata replaces the stored one whole.
 * @throws Problem not_found; validation, 422, for a valid_to that is not after valid_from and for the metadata;
 *   conflict where its pricing_adjustments differ from the stored ones in anything, order and digits included.
 */
export async function changeRelation(
  db: Database,
  key: { readonly sourceId: string; readonly id: string },
  validTo: Instant | null,
  body: string,
  actor: string,
): Promise<RelationRow> {
  return await transaction(db, async (tx) => {
    const locked = await lockRelation(tx, key.sourceId, key.id);
    if (locked === null) throw new Problem("not_found");
    const { relation, adjustments } = locked;
    if (validTo !== null && validTo <= relation.validFrom) {
      const msg = `must be after valid_from, which is ${formatInstant(relation.validFrom)}`;
      throw refused([{ loc: "body.valid_to", msg }]);
    }
    const metadata = await metadataOf(tx, body);
    if (metadata !== null && metadata.adjustments !== adjustments) {
      throw new Problem(
        "conflict",
        "pricing_adjustments are fixed: send them as they are stored, or close the relation and make another",
      );
    }
    const changed = await updateRelation(tx, key.id, { validTo, metadata: metadata?.text ?? null });
    await audit(tx, actor, "project_relation.update", key.id, {
      ...(validTo === null ? {} : { valid_to: formatInstant(validTo) }),
      ...(metadata === null ? {} : { metadata: metadata.text }),
    });
    return changed;
  });
}

/**
 * Closes a relation that leaves the project, now; one that hasn't begun to hold is closed where it begins, and never
 * held. One that is closed already stays as it is, and leaves no audit row.
 * @throws Problem not_found
 */
export async function closeRelation(
  db: Database,
  key: { readonly sourceId: string; readonly id: string },
  now: Instant,
  actor: string,
): Promise<void> {
  await transaction(db, async (tx) => {
    const locked = await lockRelation(tx, key.sourceId, key.id);
    if (locked === null) throw new Problem("not_found");
    const { validFrom, validTo } = locked.relation;
    if (validTo !== null) return;
    const closedAt = now > validFrom ? now : validFrom;
    await updateRelation(tx, key.id, { validTo: closedAt, metadata: null });
    await audit(tx, actor, "project_relation.close", key.id, { valid_to: formatInstant(closedAt) });
  });
}

async function audit(tx: Transaction, actor: string, action: string, objectId: string, details: object) {
  await writeAudit(tx, [{ actor, action, objectType: "project_relation", objectId, details }]);
}

/** Every violation is told: there are no more than a document of that size can have. */
function refused(errors: readonly FieldError[]): Problem {
  const detail = errors.map(({ loc, msg }) => `${loc}: ${msg}`).join("; ");
  return new Problem("validation", detail.length > 500 ? `${detail.slice(0, 500)}…` : detail, {
    status: 422,
    errors,
  });
}
