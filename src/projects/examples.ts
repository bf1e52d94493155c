/** What the OpenAPI document shows of the registry's bodies and answers. */

export const PROJECT = {
  id: "0f6a5a0e-3f0c-4a52-9d1a-6d2c1c9b7e01",
  platform: "openstack",
  cloud: "os-prod-eu1",
  external_id: "1bc556d8a78249379a07b5a94c533e7a",
  name: "shop",
  metadata: { cost_centre: "4711" },
  created_at: "2026-02-01T09:30:00.25Z",
};

export const CREATE_PROJECT = {
  platform: PROJECT.platform,
  cloud: PROJECT.cloud,
  external_id: PROJECT.external_id,
  name: PROJECT.name,
  metadata: PROJECT.metadata,
};

export const RELATION = {
  id: "5b1d0c5f-0f0e-4a1c-8a55-2c9e7d3f4b02",
  source_id: PROJECT.id,
  target_id: "9c2e4f7a-6b1d-4e0f-b7a3-1f8d5c6e2a03",
  relation_type: "infrastructure_tenant",
  valid_from: "2026-03-01T00:00:00Z",
  valid_to: null,
  metadata: { pricing_adjustments: [{ type: "discount", rate: "0.15", scope: "openstack.instance" }] },
  created_at: "2026-02-27T14:05:10.5Z",
};

export const CREATE_RELATION = {
  target_id: RELATION.target_id,
  relation_type: RELATION.relation_type,
  valid_from: RELATION.valid_from,
  metadata: RELATION.metadata,
};

export const RELATED = {
  project: {
    ...PROJECT,
    id: RELATION.target_id,
    external_id: "77a1c0f94b5e4f0d8e2b3c6d5a4f9e10",
    name: "shop-staging",
    metadata: {},
  },
  relation_type: RELATION.relation_type,
  depth: 1,
  path: [RELATION.id],
};

export const SUMMARY = {
  project: { id: PROJECT.id, cloud: PROJECT.cloud, external_id: PROJECT.external_id },
  resource_types: [
    { resource_type: "instance", created: 3, deleted: 1, total_minutes: 44_640, active_now: 2 },
    { resource_type: "volume", created: 0, deleted: 0, total_minutes: 0, active_now: 1 },
  ],
};
