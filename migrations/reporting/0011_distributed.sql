-- Where the database has Citus, events and the rows that follow from them are spread over its nodes by their cloud:
-- every statement of ingest names one cloud, so that each batch is one node's affair. The identity of an event gains
-- its cloud there, because a unique key must hold what a table is spread by.

-- migrate:up

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb') THEN
    RAISE NOTICE 'events is a hypertable already: it stays on this node';
    RETURN;
  END IF;
  -- What refuses changes of events is a trigger, which Citus copies to every part of the table when it is told to.
  PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
  PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
  ALTER TABLE events DROP CONSTRAINT events_pkey;
  ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (timestamp, event_id, cloud);
  PERFORM create_distributed_table('events', 'cloud', colocate_with => 'none');
  PERFORM create_distributed_table('current_resources', 'cloud', colocate_with => 'events');
END
$$;

-- migrate:down

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'events'::regclass) THEN
    RETURN;
  END IF;
  PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
  PERFORM undistribute_table('current_resources');
  PERFORM undistribute_table('events');
  ALTER TABLE events DROP CONSTRAINT events_pkey;
  -- Fails where two clouds have an event of one id and one timestamp: only with Citus are those two events.
  ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (timestamp, event_id);
END
$$;
