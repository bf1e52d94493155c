-- A page by a filter that hardly anything passes, or nothing at all: a platform, a state, a kind of refusal that isn't
-- there. Without these, everything is read to find that out.

-- migrate:up

-- Block range indexes say of every few pages of a table which values stand in them. They take some hundred kilobytes
-- a million rows, and are written to only where a value is new to its pages.
DROP INDEX events_by_arrival;
CREATE INDEX events_by_arrival ON events
  USING brin (received_at, platform text_bloom_ops (n_distinct_per_range = 16)) WITH (pages_per_range = 32);

-- The state of what lives: all that is dead is in the state "deleted". An update stays in place (HOT) as long as it
-- changes nothing that an index of another kind holds, so that a change of state still costs what it did. That holds
-- from PostgreSQL 16 on. On 15 it would write to every index of the table, so that there the state has none, and the
-- planner is only told how common each is.
DO $$
BEGIN
  IF current_setting('server_version_num')::int >= 160000 THEN
    CREATE INDEX current_resources_by_value ON current_resources
      USING brin ((CASE WHEN deleted_at IS NULL THEN state END) text_bloom_ops (n_distinct_per_range = 32),
                  platform text_bloom_ops (n_distinct_per_range = 16)) WITH (pages_per_range = 4);
  ELSE
    CREATE INDEX current_resources_by_value ON current_resources
      USING brin (platform text_bloom_ops (n_distinct_per_range = 16)) WITH (pages_per_range = 4);
    CREATE STATISTICS current_resources_living_state
      ON (CASE WHEN deleted_at IS NULL THEN state END) FROM current_resources;
  END IF;
END
$$;
-- Written when something is deleted, and hardly ever after.
CREATE INDEX current_resources_dead ON current_resources (cloud, resource_type, resource_id)
  WHERE deleted_at IS NOT NULL;

CREATE INDEX rejected_events_by_kind ON rejected_events (reason_kind, received_at, id);
CREATE INDEX sync_runs_by_status ON sync_runs (status, started_at, id);

-- migrate:down

DROP INDEX sync_runs_by_status;
DROP INDEX rejected_events_by_kind;
DROP INDEX current_resources_dead;
DROP INDEX current_resources_by_value;
DROP STATISTICS IF EXISTS current_resources_living_state;
DROP INDEX events_by_arrival;
CREATE INDEX events_by_arrival ON events USING brin (received_at);
