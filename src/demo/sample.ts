/**
 * The recorded life of a small OpenStack cloud: 138 events over five weeks, as its services' notifications told
 * of them. People and projects are made up; the bytes are what real services sent, mapped to canonical events.
 */
import recording from "./openstack-events.ndjson" with { type: "text" };

/** The events' JSON texts, by timestamp. */
export const SAMPLE_EVENTS: readonly string[] = recording.trimEnd().split("\n");

/** What the recording's events name as their platform and cloud. */
export const SAMPLE_PLATFORM = "openstack";
export const SAMPLE_CLOUD = "os-zed-1";

/** The recording's projects by id, as their owners called them. */
export const SAMPLE_PROJECTS: ReadonlyMap<string, string> = new Map([
  ["1bc556d8a78249379a07b5a94c533e7a", "acme-prod"],
  ["7fedb5827e4840fa9762598eeae19a44", "Zürich-研究"],
]);

/** The recording's volume types by id: its events know no names. */
export const SAMPLE_VOLUME_TYPES: ReadonlyMap<string, string> = new Map([
  ["09d83b35-c2c8-4553-9554-801da771a925", "ssd"],
  ["8c4bb727-7016-4294-9964-bbe843d356f1", "archive"],
  ["6201dfa2-8811-4d58-8335-27f91a371d62", "nowhere"],
  ["ace5cf2a-f45f-4067-b34b-a5e38536492e", "shared-ssd"],
  ["b9798d38-86ab-4174-9f32-e8d75760af79", "__DEFAULT__"],
]);

/** One resource whose life is worth a look. */
export interface TellingLife {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly title: string;
}

/** A resize, a change of owner, a delete. */
export const TELLING_LIVES: readonly TellingLife[] = [
  {
    resourceType: "instance",
    resourceId: "257fe5d3-eaff-41eb-9df0-9ec4e06509c9",
    title: "A server that was resized twice, and paused and suspended in between",
  },
  {
    resourceType: "volume",
    resourceId: "5b711d88-5fee-44c0-89c2-5937294169b3",
    title: "A volume that was handed to another project",
  },
  {
    resourceType: "instance",
    resourceId: "571e28be-ff53-4bad-a3d5-09854010a196",
    title: "A server that was shelved, taken up again and deleted",
  },
];
