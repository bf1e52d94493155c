/** Items for ingest tests: a good event to begin with, and its text with one place changed. */

/** The parts of a good event, each as JSON text, so that a test can put anything in its place. */
export type ItemParts = Record<string, string>;

let made = 0;

/** A create of an instance in (openstack, os-1), its own resource and id each time. */
export function goodParts(): ItemParts {
  made += 1;
  return {
    event_id: `"good-${made}"`,
    timestamp: '"2026-03-01T08:00:00Z"',
    event_type: '"compute.instance.create.end"',
    platform: '"openstack"',
    cloud: '"os-1"',
    resource_type: '"instance"',
    resource_id: `"vm-${made}"`,
    project_id: '"p1"',
    payload: '{"state":"active","size":{"vcpus":2,"ram_gb":4,"disk_gb":40,"flavor":"m1.medium"}}',
  };
}

/** The item's text, with parts replaced; a part that is null is left out. */
export function itemText(changes: Record<string, string | null> = {}): string {
  const parts: Record<string, string | null> = { ...goodParts(), ...changes };
  const members = Object.entries(parts).flatMap(([name, value]) =>
    value === null ? [] : [`"${name}":${value}`],
  );
  return `{${members.join(",")}}`;
}

/** The payload of a good create with its members changed, as JSON text. */
export function payloadText(changes: Record<string, string | null>): string {
  const parts: Record<string, string | null> = {
    state: '"active"',
    size: '{"vcpus":2,"ram_gb":4,"disk_gb":40,"flavor":"m1.medium"}',
    ...changes,
  };
  const members = Object.entries(parts).flatMap(([name, value]) =>
    value === null ? [] : [`"${name}":${value}`],
  );
  return `{${members.join(",")}}`;
}
