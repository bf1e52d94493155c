-- Dead letters that can be worked with: resolved once a retry stored them, and found by the cloud that the item
-- itself named. And what reading the audit log and the sync runs page by page takes.

-- migrate:up

ALTER TABLE rejected_events
  ADD COLUMN resolved_at timestamptz,
  ADD COLUMN item_cloud text COLLATE "C",
  ADD COLUMN whole boolean NOT NULL DEFAULT true,
  DROP CONSTRAINT rejected_events_reason_kind_check,
  -- A retry may get past the check that refused an item, and then find it out of its credential's scope.
  ADD CONSTRAINT rejected_events_reason_kind_check CHECK (reason_kind IN ('schema', 'scope', 'size_schema'));
COMMENT ON COLUMN rejected_events.resolved_at IS 'when a retry stored the item, or found it stored';
COMMENT ON COLUMN rejected_events.item_cloud IS 'the cloud that the item named, where it named one';
COMMENT ON COLUMN rejected_events.whole IS 'false: the item was too large to keep, and raw says only how large';

-- raw may be no jsonb at all (1e400000) and hold text that json can't decode (a lone surrogate): such an item's
-- cloud stays unknown.
DO $$
DECLARE
  letter record;
  named text;
BEGIN
  FOR letter IN SELECT id, raw FROM rejected_events LOOP
    BEGIN
      named := CASE WHEN json_typeof(letter.raw::json) = 'object'
                     AND json_typeof(letter.raw::json -> 'cloud') = 'string'
                    THEN letter.raw::json ->> 'cloud' END;
    -- Too deep for json is a program limit.
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
      named := NULL;
    END;
    UPDATE rejected_events
       SET item_cloud = CASE WHEN octet_length(named) BETWEEN 1 AND 512 THEN named END,
           whole = letter.raw !~ '^\{"not_stored":\{"bytes":\d+\}\}$'
     WHERE id = letter.id;
  END LOOP;
END
$$;

CREATE INDEX rejected_events_open ON rejected_events (received_at, id) WHERE resolved_at IS NULL;
CREATE INDEX rejected_events_open_by_kind ON rejected_events (reason_kind, received_at, id)
  WHERE resolved_at IS NULL;
CREATE INDEX rejected_events_by_cloud ON rejected_events (item_cloud, received_at, id)
  WHERE item_cloud IS NOT NULL;
CREATE INDEX rejected_events_resolved ON rejected_events (received_at, id) WHERE resolved_at IS NOT NULL;

-- Nearly all of the log are batches; what else was done is found without reading them.
CREATE INDEX audit_log_by_actor ON audit_log (actor, at, id);
CREATE INDEX audit_log_by_action ON audit_log (action, at, id) WHERE action <> 'events.ingest';
CREATE INDEX audit_log_by_object_type ON audit_log (object_type, at, id) WHERE object_type <> 'batch';
CREATE INDEX sync_runs_by_time ON sync_runs (started_at, id);

-- migrate:down

DROP INDEX sync_runs_by_time;
DROP INDEX audit_log_by_object_type;
DROP INDEX audit_log_by_action;
DROP INDEX audit_log_by_actor;
DROP INDEX rejected_events_resolved;
DROP INDEX rejected_events_by_cloud;
DROP INDEX rejected_events_open_by_kind;
DROP INDEX rejected_events_open;
UPDATE rejected_events SET reason_kind = 'schema' WHERE reason_kind = 'scope';
ALTER TABLE rejected_events
  DROP CONSTRAINT rejected_events_reason_kind_check,
  ADD CONSTRAINT rejected_events_reason_kind_check CHECK (reason_kind IN ('schema', 'size_schema')),
  DROP COLUMN whole,
  DROP COLUMN item_cloud,
  DROP COLUMN resolved_at;
