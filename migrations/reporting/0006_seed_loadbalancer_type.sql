-- The size schema of OpenStack's load balancers; like 0002, it leaves an operator's row alone.

-- migrate:up

INSERT INTO resource_types (platform, resource_type, size_schema) VALUES
  ('openstack', 'loadbalancer',
   '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["listeners","pools"],"properties":{"listeners":{"type":"integer","minimum":0},"pools":{"type":"integer","minimum":0}}}')
ON CONFLICT DO NOTHING;

-- migrate:down

DELETE FROM resource_types WHERE platform = 'openstack' AND resource_type = 'loadbalancer' AND size_schema::jsonb =
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["listeners","pools"],"properties":{"listeners":{"type":"integer","minimum":0},"pools":{"type":"integer","minimum":0}}}';
