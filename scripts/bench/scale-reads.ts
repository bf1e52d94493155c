/** The reads that are timed at each size: each of many places in the record, so that none is warm by itself. */
import { LARGE_PROJECT, loadedResource, type RecordShape } from "./history.ts";
import { CLOUD } from "./workload.ts";

/** Places that a read is asked for, taking turns. */
const PLACES = 100;

/** One kind of read. */
export interface ScaleRead {
  readonly name: string;
  readonly paths: readonly string[];
}

function instant(micros: number): string {
  return encodeURIComponent(new Date(Math.floor(micros / 1000)).toISOString());
}

/** @param resources how many the record has */
export function scaleReads(shape: RecordShape, resources: number): ScaleRead[] {
  const places = Array.from({ length: PLACES }, (_, n) => loadedResource(shape, (n * 104_729) % resources));
  const each = (path: (place: (typeof places)[number]) => string) => places.map(path);
  return [
    {
      name: "events from an instant",
      paths: each(({ bornMicros }) => `/api/v1/events?from=${instant(bornMicros)}`),
    },
    {
      name: "of a large project",
      paths: each(
        ({ bornMicros }) => `/api/v1/events?project_id=${LARGE_PROJECT}&from=${instant(bornMicros)}`,
      ),
    },
    { name: "of a small project", paths: each(({ projectId }) => `/api/v1/events?project_id=${projectId}`) },
    {
      name: "of one type of event",
      paths: each(
        ({ bornMicros, resourceType }) =>
          `/api/v1/events?event_type=compute.${resourceType}.resize.end&from=${instant(bornMicros)}`,
      ),
    },
    {
      name: "resources of a project",
      paths: each(({ projectId }) => `/api/v1/resources?cloud=${CLOUD}&project_id=${projectId}`),
    },
    {
      name: "resources of a type",
      paths: each(({ resourceType }) => `/api/v1/resources?resource_type=${resourceType}&status=all`),
    },
    {
      name: "a lifecycle",
      paths: each(
        ({ resourceType, resourceId }) =>
          `/api/v1/resources/${CLOUD}/${resourceType}/${resourceId}/lifecycle`,
      ),
    },
  ];
}
