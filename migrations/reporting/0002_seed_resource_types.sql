-- The size schemas of OpenStack's four basic types. A row that an operator already wrote stays as it is, both
-- ways: down removes only what up could have written.

-- migrate:up

INSERT INTO resource_types (platform, resource_type, size_schema) VALUES
  ('openstack', 'instance',
   '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["vcpus","ram_gb","disk_gb","flavor"],"properties":{"vcpus":{"type":"integer","minimum":1},"ram_gb":{"type":"number","exclusiveMinimum":0},"disk_gb":{"type":"number","minimum":0},"flavor":{"type":"string"}}}'),
  ('openstack', 'volume',
   '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["size_gb","type"],"properties":{"size_gb":{"type":"number","exclusiveMinimum":0},"type":{"type":"string"}}}'),
  ('openstack', 'floating_ip',
   '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["ip_version"],"properties":{"ip_version":{"enum":[4,6]}}}'),
  ('openstack', 'image',
   '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["size_gb"],"properties":{"size_gb":{"type":"number","minimum":0}}}')
ON CONFLICT DO NOTHING;

-- migrate:down

DELETE FROM resource_types WHERE platform = 'openstack' AND size_schema::jsonb IN (
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["vcpus","ram_gb","disk_gb","flavor"],"properties":{"vcpus":{"type":"integer","minimum":1},"ram_gb":{"type":"number","exclusiveMinimum":0},"disk_gb":{"type":"number","minimum":0},"flavor":{"type":"string"}}}',
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["size_gb","type"],"properties":{"size_gb":{"type":"number","exclusiveMinimum":0},"type":{"type":"string"}}}',
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["ip_version"],"properties":{"ip_version":{"enum":[4,6]}}}',
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["size_gb"],"properties":{"size_gb":{"type":"number","minimum":0}}}'
);
