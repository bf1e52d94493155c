-- Each index is paid at every insert, and has a read that can't do without. By type is the one that is felt there;
-- the other two hold few events.

-- migrate:up

-- A page of one type's events. A type that is rare, or misspelt, would have the whole record walked for a page.
CREATE INDEX events_by_type ON events (event_type, timestamp, event_id);
-- A page of what reconciliation corrected, which is seldom anything.
CREATE INDEX events_of_reconciliation ON events (timestamp, event_id) WHERE source = 'reconciliation';
-- A past inventory asks of each resource whether anything was deleted before an instant: an update that follows a
-- delete may be a straggler on a dead resource. Few events are deletes, so that the index is small and seldom written.
CREATE INDEX events_deletes ON events (cloud, resource_type, resource_id, timestamp) WHERE event_type LIKE '%delete%';
-- The list of resources shows what lives, and the dead keep their rows for ever: in some years they are nearly all.
-- An update that changes no deleted_at is still a HOT one.
CREATE INDEX current_resources_living ON current_resources (cloud, resource_type, resource_id)
  WHERE deleted_at IS NULL;

-- migrate:down

DROP INDEX current_resources_living;
DROP INDEX events_deletes;
DROP INDEX events_of_reconciliation;
DROP INDEX events_by_type;
