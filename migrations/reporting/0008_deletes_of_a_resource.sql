-- A past inventory asks of each resource whether anything was deleted before an instant: an update that follows a
-- delete may be a straggler on a dead resource. Few events are deletes, so that the index is small and seldom written.

-- migrate:up

CREATE INDEX events_deletes ON events (cloud, resource_type, resource_id, timestamp) WHERE event_type LIKE '%delete%';

-- migrate:down

DROP INDEX events_deletes;
