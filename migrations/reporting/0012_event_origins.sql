-- A page by a cloud that was connected a year after the others, by a type of resource that only one cloud has, by a
-- platform. Where a filter's rows aren't spread evenly, a walk of the primary key in the list's order goes through that
-- year before the first of them comes. Events have few origins: each is read by itself, in the list's order, and what
-- they give is merged.

-- migrate:up

-- Citus changes the parts of a table over several connections at once, and then makes no function in the same transaction.
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)
 WHERE EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');

-- Nulls first is the same order, since neither column is ever null, but one that the primary key can't give: to the
-- planner, which takes every origin's rows for spread evenly, the primary key is as good.
CREATE INDEX events_of_reconciliation_by_cloud ON events (cloud, timestamp NULLS FIRST, event_id NULLS FIRST)
  WHERE source = 'reconciliation';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname IN ('citus', 'timescaledb')) THEN
    -- A table in many parts has no index over all of them, and steps through each for every origin: nothing is known.
    CREATE FUNCTION event_origins(wanted_platform text, wanted_cloud text, wanted_type text)
      RETURNS TABLE (platform text, cloud text, resource_type text)
      LANGUAGE sql STABLE AS 'SELECT NULL::text, NULL::text, NULL::text';
    RETURN;
  END IF;
  CREATE INDEX events_by_origin ON events
    (platform, cloud, resource_type, timestamp NULLS FIRST, event_id NULLS FIRST);
  -- The origins that events have and that are wanted (null: any), by one step along the index each: first the clouds,
  -- which no collector can add to, then the types of those that are wanted. Of more than 250 clouds nothing is known.
  CREATE FUNCTION event_origins(wanted_platform text, wanted_cloud text, wanted_type text)
    RETURNS TABLE (platform text, cloud text, resource_type text)
    LANGUAGE sql STABLE AS '
    WITH RECURSIVE place AS (
      (SELECT e.platform, e.cloud FROM events e ORDER BY e.platform, e.cloud LIMIT 1)
      UNION ALL
      SELECT following.* FROM place p CROSS JOIN LATERAL (
        SELECT e.platform, e.cloud FROM events e
         WHERE (e.platform, e.cloud) > (p.platform, p.cloud)
         ORDER BY e.platform, e.cloud LIMIT 1) following),
    known AS MATERIALIZED (SELECT * FROM place LIMIT 251),
    origin AS (
      SELECT k.platform, k.cloud, first.resource_type FROM known k CROSS JOIN LATERAL (
        SELECT e.resource_type FROM events e
         WHERE e.platform = k.platform AND e.cloud = k.cloud AND e.resource_type >= coalesce(wanted_type, '''')
         ORDER BY e.resource_type LIMIT 1) first
       WHERE (SELECT count(*) FROM known) <= 250
         AND (wanted_platform IS NULL OR k.platform = wanted_platform)
         AND (wanted_cloud IS NULL OR k.cloud = wanted_cloud)
         AND (wanted_type IS NULL OR first.resource_type = wanted_type)
      UNION ALL
      SELECT o.platform, o.cloud, following.resource_type FROM origin o CROSS JOIN LATERAL (
        SELECT e.resource_type FROM events e
         WHERE e.platform = o.platform AND e.cloud = o.cloud AND e.resource_type > o.resource_type
         ORDER BY e.resource_type LIMIT 1) following
       WHERE wanted_type IS NULL)
    SELECT NULL::text, NULL::text, NULL::text WHERE (SELECT count(*) FROM known) > 250
    UNION ALL
    SELECT * FROM origin';
END
$$;

-- migrate:down

SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)
 WHERE EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');
DROP FUNCTION event_origins(text, text, text);
DROP INDEX IF EXISTS events_by_origin;
DROP INDEX events_of_reconciliation_by_cloud;
