-- Dated relations between projects: valid at t iff valid_from <= t and (valid_to is null or valid_to > t).
-- A relation is closed, never removed.

-- migrate:up

CREATE TABLE project_relations (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  created_at    timestamptz NOT NULL DEFAULT now(),
  valid_from    timestamptz NOT NULL,
  valid_to      timestamptz,
  source_id     uuid NOT NULL REFERENCES projects,
  target_id     uuid NOT NULL REFERENCES projects,
  relation_type text COLLATE "C" NOT NULL,
  metadata      jsonb NOT NULL DEFAULT '{}',
  CHECK (source_id <> target_id),
  CHECK (valid_to IS NULL OR valid_to > valid_from)
);
CREATE UNIQUE INDEX project_relations_open ON project_relations (source_id, target_id, relation_type)
  WHERE valid_to IS NULL;
CREATE INDEX project_relations_by_source ON project_relations (source_id, created_at, id);
CREATE INDEX project_relations_by_target ON project_relations (target_id, created_at, id);

-- migrate:down

DROP TABLE project_relations;
