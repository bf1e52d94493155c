/** Where a project's relations lead: breadth first, each project once. */
import type { Queryable } from "../database/connection.ts";
import type { Instant } from "../event/instant.ts";
import { Problem } from "../problem.ts";
import type { ProjectRow } from "./queries.ts";
import { nextLevel } from "./relation-queries.ts";

/** More projects, or relations, than this are not answered at once. */
export const MAX_UNPAGED = 10_000;

/** A project that was reached. */
export interface Reached {
  readonly project: ProjectRow;
  /** The type of the relation that it was reached over. */
  readonly relationType: string;
  /** The ids of the relations from the start to it: as many as it is deep. */
  readonly path: readonly string[];
}

/** How far to go, and over which relations. */
export interface Walk {
  readonly depth: number;
  /** Null goes over all. */
  readonly relationType: string | null;
  readonly at: Instant;
}

/**
 * Follows outgoing relations that are valid at an instant, with one statement a level. The start is never reached,
 * every other project once, on the shortest way; in visiting order, siblings by the relations' created_at and id.
 * @throws Problem result_too_large past `MAX_UNPAGED` projects.
 */
export async function relatedTo(db: Queryable, start: string, walk: Walk): Promise<Reached[]> {
  const reached: Reached[] = [];
  const known = [start];
  let level: { readonly id: string; readonly path: readonly string[] }[] = [{ id: start, path: [] }];
  for (let depth = 1; depth <= walk.depth && level.length > 0; depth++) {
    const most = MAX_UNPAGED - reached.length + 1;
    const ids = level.map(({ id }) => id);
    const steps = await nextLevel(db, ids, known, walk, most);
    if (steps.length === most) {
      throw new Problem("result_too_large", `the relations lead to more than ${MAX_UNPAGED} projects`);
    }
    const before = level;
    level = steps.map(({ project, relationId, relationType, from }) => {
      const path = [...(before[from]?.path ?? []), relationId];
      reached.push({ project, relationType, path });
      known.push(project.id);
      return { id: project.id, path };
    });
  }
  return reached;
}
