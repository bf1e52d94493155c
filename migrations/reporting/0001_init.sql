-- The record itself: events, what they fold into, who may write and read, and what was done.
-- Text that is compared or ordered is COLLATE "C": order is by bytes, whatever the cluster's locale.

-- migrate:up

-- One row a lifecycle event, for ever. The key is the identity of an event, (event_id, timestamp), with the
-- timestamp first: new rows land at the index's right edge, and it is the order of GET /api/v1/events.
CREATE TABLE events (
  timestamp     timestamptz NOT NULL,
  received_at   timestamptz NOT NULL,
  event_id      text COLLATE "C" NOT NULL,
  event_type    text COLLATE "C" NOT NULL,
  platform      text COLLATE "C" NOT NULL,
  cloud         text COLLATE "C" NOT NULL,
  resource_type text COLLATE "C" NOT NULL,
  resource_id   text COLLATE "C" NOT NULL,
  project_id    text COLLATE "C" NOT NULL,
  source        text COLLATE "C" NOT NULL CHECK (source IN ('collector', 'reconciliation')),
  payload       jsonb,
  CONSTRAINT events_pkey PRIMARY KEY (timestamp, event_id)
);

-- One resource's history: replay, lifecycle, rebuild.
CREATE INDEX events_by_resource ON events (cloud, resource_type, resource_id, timestamp);
-- One project's page of events, in the list's order.
CREATE INDEX events_by_project ON events (project_id, timestamp, event_id);
-- "What came in last night": rows lie in order of arrival, so a block range index is nearly free.
CREATE INDEX events_by_arrival ON events USING brin (received_at);

CREATE FUNCTION refuse_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are never changed or removed: % refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER events_are_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_event_change();

-- What a resource's history says it is now. (last_event_at, last_received_at, last_event_id) is the newest
-- event in fold order: an older one that arrives replays the history. The payload stays in events.
CREATE TABLE current_resources (
  created_at       timestamptz,
  deleted_at       timestamptz,
  first_event_at   timestamptz NOT NULL,
  last_event_at    timestamptz NOT NULL,
  last_received_at timestamptz NOT NULL,
  cloud            text COLLATE "C" NOT NULL,
  resource_type    text COLLATE "C" NOT NULL,
  resource_id      text COLLATE "C" NOT NULL,
  platform         text COLLATE "C" NOT NULL,
  project_id       text COLLATE "C" NOT NULL,
  state            text COLLATE "C" NOT NULL,
  last_event_id    text COLLATE "C" NOT NULL,
  last_event_type  text COLLATE "C" NOT NULL,
  size             jsonb NOT NULL,
  CONSTRAINT current_resources_pkey PRIMARY KEY (cloud, resource_type, resource_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX current_resources_by_project ON current_resources (project_id, cloud, resource_type, resource_id);

-- Items that were refused. raw is text: an item may hold what neither json nor jsonb can (1e400000, a lone
-- surrogate), and it is kept digit for digit.
CREATE TABLE rejected_events (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  received_at   timestamptz NOT NULL,
  reason        text NOT NULL,
  reason_kind   text NOT NULL CHECK (reason_kind IN ('schema', 'size_schema')),
  source        text NOT NULL CHECK (source IN ('collector', 'reconciliation')),
  credential_id uuid,
  platform      text COLLATE "C",
  cloud         text COLLATE "C",
  raw           text NOT NULL
);
COMMENT ON COLUMN rejected_events.platform IS 'the platform of the credential that the item came with';
COMMENT ON COLUMN rejected_events.cloud IS 'the cloud of the credential that the item came with';
CREATE INDEX rejected_events_by_arrival ON rejected_events (received_at, id);

CREATE TABLE resource_types (
  platform      text COLLATE "C" NOT NULL,
  resource_type text COLLATE "C" NOT NULL,
  -- json, not jsonb: the document is answered as it was registered, digit for digit and in its order.
  size_schema   json NOT NULL,
  updated_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (platform, resource_type)
);

CREATE TABLE projects (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  created_at  timestamptz NOT NULL DEFAULT now(),
  platform    text COLLATE "C" NOT NULL,
  cloud       text COLLATE "C" NOT NULL,
  external_id text COLLATE "C" NOT NULL,
  name        text,
  metadata    jsonb NOT NULL DEFAULT '{}',
  UNIQUE (cloud, external_id)
);

-- Only the SHA-256 of a token is ever stored.
CREATE TABLE ingest_credentials (
  id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  created_at   timestamptz NOT NULL DEFAULT now(),
  revoked_at   timestamptz,
  platform     text COLLATE "C" NOT NULL,
  cloud        text COLLATE "C" NOT NULL,
  description  text,
  token_sha256 bytea NOT NULL UNIQUE
);

CREATE TABLE api_tokens (
  id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  created_at   timestamptz NOT NULL DEFAULT now(),
  revoked_at   timestamptz,
  role         text NOT NULL CHECK (role IN ('admin', 'read_all', 'project')),
  -- The registry ids a project token stands for; empty for the other roles.
  project_ids  uuid[] NOT NULL DEFAULT '{}',
  description  text,
  token_sha256 bytea NOT NULL UNIQUE,
  CHECK ((role = 'project') = (project_ids <> '{}'))
);

-- One row a write: who (a credential's or token's id, internal, admin-cli), what, to which object.
CREATE TABLE audit_log (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at          timestamptz NOT NULL DEFAULT now(),
  actor       text NOT NULL,
  action      text NOT NULL,
  object_type text NOT NULL,
  object_id   text NOT NULL,
  details     jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_log_by_time ON audit_log (at, id);

-- migrate:down

DROP TABLE audit_log;
DROP TABLE api_tokens;
DROP TABLE ingest_credentials;
DROP TABLE projects;
DROP TABLE resource_types;
DROP TABLE rejected_events;
DROP TABLE current_resources;
DROP TABLE events;
DROP FUNCTION refuse_event_change();
