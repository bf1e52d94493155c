/** What the OpenAPI document shows of the read side's answers. */

export const EVENT = {
  event_id: "5f0c2a1e-8f8b-4a55-9a37-0a1f3f6d2c11",
  timestamp: "2026-03-01T08:00:00.25Z",
  event_type: "compute.instance.create.end",
  platform: "openstack",
  cloud: "os-prod-eu1",
  resource_type: "instance",
  resource_id: "257fe5d3-eaff-41eb-9df0-9ec4e06509c9",
  project_id: "1bc556d8a78249379a07b5a94c533e7a",
  source: "collector",
  payload: { state: "active", size: { vcpus: 2, ram_gb: 4, disk_gb: 40, flavor: "m1.medium" } },
  received_at: "2026-03-01T08:00:02.000001Z",
};

export const RESOURCE = {
  cloud: EVENT.cloud,
  resource_type: EVENT.resource_type,
  resource_id: EVENT.resource_id,
  platform: EVENT.platform,
  project_id: EVENT.project_id,
  state: EVENT.payload.state,
  size: EVENT.payload.size,
  created_at: EVENT.timestamp,
  deleted_at: null,
  first_event_at: EVENT.timestamp,
  last_event_at: EVENT.timestamp,
  last_event_type: EVENT.event_type,
  last_payload: EVENT.payload,
};

/** The interval that the event opens. */
export const HISTORY_START = {
  from: EVENT.timestamp,
  to: null,
  state: EVENT.payload.state,
  size: EVENT.payload.size,
  project_id: EVENT.project_id,
};
