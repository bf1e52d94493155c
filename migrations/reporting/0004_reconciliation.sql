-- What reconciliation runs did, and the names that a cloud's listings give to size members.

-- migrate:up

CREATE TABLE sync_runs (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  started_at  timestamptz NOT NULL,
  finished_at timestamptz,
  cloud       text COLLATE "C" NOT NULL,
  platform    text COLLATE "C" NOT NULL,
  status      text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
  stats       jsonb NOT NULL DEFAULT '{}',
  CHECK ((status = 'running') = (finished_at IS NULL))
);
CREATE INDEX sync_runs_by_cloud ON sync_runs (cloud, started_at, id);

CREATE TABLE size_names (
  cloud         text COLLATE "C" NOT NULL,
  resource_type text COLLATE "C" NOT NULL,
  member        text COLLATE "C" NOT NULL,
  value         text COLLATE "C" NOT NULL,
  name          text NOT NULL,
  PRIMARY KEY (cloud, resource_type, member, value)
);

-- migrate:down

DROP TABLE size_names;
DROP TABLE sync_runs;
