-- On a server that offers TimescaleDB, events become a hypertable, compressed after 90 days. Versions before
-- 2.18.1 lose rows on ON CONFLICT into compressed chunks, so they are left alone and the table stays plain.

-- migrate:up

DO $$
DECLARE
  offered text;
  parts int[];
BEGIN
  SELECT coalesce(installed_version, default_version) INTO offered
    FROM pg_available_extensions WHERE name = 'timescaledb';
  IF offered IS NULL THEN
    RETURN;
  END IF;
  parts := string_to_array(substring(offered FROM '^\d+\.\d+\.\d+'), '.')::int[];
  IF parts IS NULL OR parts < ARRAY[2, 18, 1] THEN
    RAISE NOTICE 'TimescaleDB % is too old (2.18.1 or newer is needed): events stays a plain table', offered;
    RETURN;
  END IF;
  IF current_setting('shared_preload_libraries') NOT LIKE '%timescaledb%' THEN
    RAISE NOTICE 'TimescaleDB is installed but not in shared_preload_libraries: events stays a plain table';
    RETURN;
  END IF;
  BEGIN
    CREATE EXTENSION IF NOT EXISTS timescaledb;
  EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'this role may not create the extension timescaledb: events stays a plain table';
    RETURN;
  END;
  PERFORM create_hypertable('events'::regclass, 'timestamp'::name, chunk_time_interval => interval '7 days', migrate_data => true);
  EXECUTE 'ALTER TABLE events SET (timescaledb.compress, timescaledb.compress_segmentby = ''cloud, resource_type'', '
       || 'timescaledb.compress_orderby = ''timestamp, event_id'')';
  PERFORM add_compression_policy('events'::regclass, interval '90 days');
END
$$;

-- migrate:down

-- A hypertable can't be turned back in place; 0001's down drops it whole. Only the policy goes here.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb') THEN
    PERFORM remove_compression_policy('events'::regclass, if_exists => true);
  END IF;
END
$$;
