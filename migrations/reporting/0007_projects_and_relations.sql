-- The registry's filters, and relations that are closed at the instant they begin.

-- migrate:up

-- GET /api/v1/projects filtered by platform or by external id alone, each in the list's order.
CREATE INDEX projects_by_platform ON projects (platform, cloud, external_id);
CREATE INDEX projects_by_external_id ON projects (external_id, cloud);

-- A relation that is closed before it begins to hold (or in the microsecond in which it does) never held:
-- its valid_to is its valid_from. The one constraint over these two columns was strict.
DO $$
DECLARE
  held text;
BEGIN
  SELECT conname INTO STRICT held FROM pg_constraint
    WHERE conrelid = 'project_relations'::regclass AND contype = 'c'
      AND pg_get_constraintdef(oid) LIKE '%valid_to > valid_from%';
  EXECUTE format('ALTER TABLE project_relations DROP CONSTRAINT %I', held);
END
$$;
ALTER TABLE project_relations ADD CONSTRAINT project_relations_validity
  CHECK (valid_to IS NULL OR valid_to >= valid_from);

-- migrate:down

-- NOT VALID: relations that never held stay as they are.
ALTER TABLE project_relations DROP CONSTRAINT project_relations_validity;
ALTER TABLE project_relations ADD CONSTRAINT project_relations_check1
  CHECK (valid_to IS NULL OR valid_to > valid_from) NOT VALID;
DROP INDEX projects_by_external_id;
DROP INDEX projects_by_platform;
