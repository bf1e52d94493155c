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
    -- A table in many parts has no index over all of them, and steps through each for every origin: none is told.
    CREATE FUNCTION event_origins(most int) RETURNS TABLE (platform text, cloud text, resource_type text)
      LANGUAGE sql STABLE AS 'SELECT NULL::text, NULL::text, NULL::text WHERE false';
    RETURN;
  END IF;
  CREATE INDEX events_by_origin ON events
    (platform, cloud, resource_type, timestamp NULLS FIRST, event_id NULLS FIRST);
  -- Every origin that an event has, by one step along the index each; at most so many.
  CREATE FUNCTION event_origins(most int) RETURNS TABLE (platform text, cloud text, resource_type text)
    LANGUAGE sql STABLE AS '
    WITH RECURSIVE origin AS (
      (SELECT e.platform, e.cloud, e.resource_type FROM events e
        ORDER BY e.platform, e.cloud, e.resource_type LIMIT 1)
      UNION ALL
      SELECT following.* FROM origin o CROSS JOIN LATERAL (
        SELECT e.platform, e.cloud, e.resource_type FROM events e
         WHERE (e.platform, e.cloud, e.resource_type) > (o.platform, o.cloud, o.resource_type)
         ORDER BY e.platform, e.cloud, e.resource_type LIMIT 1) following)
    SELECT * FROM origin LIMIT most';
END
$$;

-- migrate:down

SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)
 WHERE EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');
DROP FUNCTION event_origins(int);
DROP INDEX IF EXISTS events_by_origin;
DROP INDEX events_of_reconciliation_by_cloud;
