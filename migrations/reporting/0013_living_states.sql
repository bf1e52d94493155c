-- A page of resources by a state. Which states there are depends on the type of resource: a walk in the list's order
-- goes through all that live in front of the first volume that is "in-use". An index by state would be written at
-- every change of one. So the database keeps where a state was ever seen, which is seldom anything new.

-- migrate:up

-- Citus changes the parts of a table over several connections at once, and then makes no function in the same transaction.
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)
 WHERE EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');

-- Rows are added only: what is written here is, or once was. A state that isn't here for a cloud's type is nowhere in it.
CREATE TABLE living_states (
  state         text COLLATE "C" NOT NULL,
  cloud         text COLLATE "C" NOT NULL,
  resource_type text COLLATE "C" NOT NULL,
  CONSTRAINT living_states_pkey PRIMARY KEY (state, cloud, resource_type)
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- The parts of a table have no triggers that see a statement's rows: nothing is known there, anywhere is possible.
    CREATE FUNCTION places_in_state(wanted text) RETURNS TABLE (cloud text, resource_type text)
      LANGUAGE sql STABLE AS 'SELECT NULL::text, NULL::text';
    CREATE FUNCTION keep_all_living_states() RETURNS void LANGUAGE sql AS '';
    RETURN;
  END IF;
  CREATE FUNCTION places_in_state(wanted text) RETURNS TABLE (cloud text, resource_type text)
    LANGUAGE sql STABLE AS 'SELECT l.cloud, l.resource_type FROM living_states l WHERE l.state = wanted';
  -- What is new somewhere is added by one transaction after the other, cloud by cloud: two that add the same, in
  -- several statements each, would wait for each other.
  CREATE FUNCTION keep_living_states() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS '
    DECLARE
      somewhere text;
    BEGIN
      FOR somewhere IN
        SELECT DISTINCT seen.cloud
          FROM (SELECT DISTINCT w.state, w.cloud, w.resource_type FROM written w WHERE w.deleted_at IS NULL) seen
         WHERE NOT EXISTS (SELECT FROM living_states l WHERE l.state = seen.state AND l.cloud = seen.cloud
                                                         AND l.resource_type = seen.resource_type)
         ORDER BY 1
      LOOP
        PERFORM pg_advisory_xact_lock(hashtext(''living_states''), hashtext(somewhere));
        INSERT INTO living_states (state, cloud, resource_type)
        SELECT DISTINCT w.state, w.cloud, w.resource_type FROM written w
         WHERE w.deleted_at IS NULL AND w.cloud = somewhere
         ORDER BY 1, 2, 3
        ON CONFLICT DO NOTHING;
      END LOOP;
      RETURN NULL;
    END';
  -- One for each: a trigger that sees a statement's rows is for one kind of statement.
  CREATE TRIGGER inserted_states AFTER INSERT ON current_resources REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION keep_living_states();
  CREATE TRIGGER updated_states AFTER UPDATE ON current_resources REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION keep_living_states();
  -- For rows that were there before, or that were put there with triggers off.
  CREATE FUNCTION keep_all_living_states() RETURNS void LANGUAGE sql AS '
    INSERT INTO living_states (state, cloud, resource_type)
    SELECT DISTINCT r.state, r.cloud, r.resource_type FROM current_resources r WHERE r.deleted_at IS NULL
     ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING';
  PERFORM keep_all_living_states();
END
$$;

-- migrate:down

SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)
 WHERE EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');
-- With its triggers: Citus refuses to drop even those that aren't there.
DROP FUNCTION IF EXISTS keep_living_states() CASCADE;
DROP FUNCTION keep_all_living_states();
DROP FUNCTION places_in_state(text);
DROP TABLE living_states;
