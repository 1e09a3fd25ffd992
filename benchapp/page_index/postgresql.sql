-- The page index in PostgreSQL; benchapp/page_index/__init__.py explains the method.
-- The script can be run again: it restores what is missing and enables what is disabled.

-- A log of changes: the rows of a block are the sum over its entries. A write only adds entries and never
-- changes one that another transaction may hold, so writers do not wait for each other here. An entry and
-- the rows that it counts become visible together, so the sum is exact in every snapshot.
CREATE TABLE IF NOT EXISTS benchapp_pageblock (
  list text NOT NULL,       -- the table whose rows are counted
  bits smallint NOT NULL,   -- 8 for blocks of 256 ids, 16 for blocks of 65,536
  block bigint NOT NULL,    -- id >> bits
  rows integer NOT NULL     -- added; negative after a delete
);
CREATE INDEX IF NOT EXISTS benchapp_pageblock_list ON benchapp_pageblock (list, bits, block) INCLUDE (rows);
-- Without a primary key a publication of all tables would refuse to delete entries.
ALTER TABLE benchapp_pageblock REPLICA IDENTITY FULL;


-- Replaces the entries of each block by their sum. Entries that another transaction folds just now are left
-- to it. It must run in READ COMMITTED: at a higher level a fold elsewhere would be a serialization failure.
CREATE OR REPLACE FUNCTION benchapp_fold_blocks(a_list text) RETURNS void LANGUAGE sql AS $$
  WITH crowded AS MATERIALIZED (
    SELECT bits, block FROM benchapp_pageblock WHERE list = a_list GROUP BY bits, block HAVING count(*) > 1
  ), taken AS MATERIALIZED (
    SELECT ctid FROM benchapp_pageblock
    WHERE list = a_list AND (bits, block) IN (SELECT bits, block FROM crowded) FOR UPDATE SKIP LOCKED
  ), folded AS (
    DELETE FROM benchapp_pageblock WHERE ctid = ANY (ARRAY(SELECT ctid FROM taken)) RETURNING bits, block, rows
  )
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  SELECT a_list, bits, block, sum(rows) FROM folded GROUP BY bits, block HAVING sum(rows) <> 0
$$;


-- The number of rows of a list, and where the row stands that has `a_position` newer ones: after `newer` rows
-- of the 256 ids up to `last_id`, which is NULL if the list is not that long. Goes through the blocks from the
-- nearer end, first the large ones, then the small ones within one of these.
CREATE OR REPLACE FUNCTION benchapp_find_block(
  a_list text, a_position bigint, OUT total bigint, OUT last_id bigint, OUT newer bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  entry record;
  held bigint;  -- rows from `low` to `high`
  low bigint := -9223372036854775808;
  high bigint := 9223372036854775807;
BEGIN
  SELECT coalesce(sum(rows), 0) INTO total FROM benchapp_pageblock WHERE list = a_list AND bits = 16;
  IF a_position >= total THEN
    RETURN;
  END IF;
  held := total;
  newer := a_position;
  FOR a_bits IN REVERSE 16..8 BY 8 LOOP
    IF newer < held / 2 THEN
      FOR entry IN
        SELECT block, sum(rows) AS rows FROM benchapp_pageblock
        WHERE list = a_list AND bits = a_bits AND block BETWEEN low AND high GROUP BY block ORDER BY block DESC
      LOOP
        EXIT WHEN newer < entry.rows;
        newer := newer - entry.rows;
      END LOOP;
    ELSE
      newer := newer - held;  -- negative: counted from the oldest row
      FOR entry IN
        SELECT block, sum(rows) AS rows FROM benchapp_pageblock
        WHERE list = a_list AND bits = a_bits AND block BETWEEN low AND high GROUP BY block ORDER BY block
      LOOP
        newer := newer + entry.rows;
        EXIT WHEN newer >= 0;
      END LOOP;
    END IF;
    held := entry.rows;
    low := entry.block << 8;
    high := low + 255;
  END LOOP;
  last_id := high;
END $$;


-- Blocks: one statement, one entry for each block that it writes to. Now and then a writer folds the log.
CREATE OR REPLACE FUNCTION benchapp_count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  SELECT TG_TABLE_NAME, bits, id >> bits, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END
  FROM changed CROSS JOIN (VALUES (8), (16)) AS levels (bits) GROUP BY bits, id >> bits;
  IF random() < 0.01 AND current_setting('transaction_isolation') = 'read committed' THEN
    PERFORM benchapp_fold_blocks(TG_TABLE_NAME);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER benchapp_author_insert AFTER INSERT ON benchapp_author
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_rows();
CREATE OR REPLACE TRIGGER benchapp_author_delete AFTER DELETE ON benchapp_author
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_rows();
CREATE OR REPLACE TRIGGER benchapp_post_insert AFTER INSERT ON benchapp_post
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_rows();
CREATE OR REPLACE TRIGGER benchapp_post_delete AFTER DELETE ON benchapp_post
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_rows();
CREATE OR REPLACE TRIGGER benchapp_comment_insert AFTER INSERT ON benchapp_comment
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_rows();
CREATE OR REPLACE TRIGGER benchapp_comment_delete AFTER DELETE ON benchapp_comment
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_rows();


-- TRUNCATE removes rows that an old snapshot does not see, whose entries a DELETE would then leave behind.
CREATE OR REPLACE FUNCTION benchapp_empty_list() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION '%: TRUNCATE needs a transaction in READ COMMITTED', TG_TABLE_NAME
      USING ERRCODE = 'feature_not_supported';
  END IF;
  DELETE FROM benchapp_pageblock WHERE list = TG_TABLE_NAME;
  IF TG_TABLE_NAME = 'benchapp_post' THEN
    UPDATE benchapp_author SET post_count = 0 WHERE post_count <> 0;
  ELSIF TG_TABLE_NAME = 'benchapp_comment' THEN
    UPDATE benchapp_post SET comment_count = 0 WHERE comment_count <> 0;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER benchapp_author_truncate AFTER TRUNCATE ON benchapp_author
  FOR EACH STATEMENT EXECUTE FUNCTION benchapp_empty_list();
CREATE OR REPLACE TRIGGER benchapp_post_truncate AFTER TRUNCATE ON benchapp_post
  FOR EACH STATEMENT EXECUTE FUNCTION benchapp_empty_list();
CREATE OR REPLACE TRIGGER benchapp_comment_truncate AFTER TRUNCATE ON benchapp_comment
  FOR EACH STATEMENT EXECUTE FUNCTION benchapp_empty_list();


-- Ids do not change: the counts of a parent would have to follow its children from one id to the other.
CREATE OR REPLACE FUNCTION benchapp_refuse_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%: an id cannot be changed; insert a new row and delete the old one', TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER benchapp_author_id BEFORE UPDATE ON benchapp_author
  FOR EACH ROW WHEN (NEW.id <> OLD.id) EXECUTE FUNCTION benchapp_refuse_id();
CREATE OR REPLACE TRIGGER benchapp_post_id BEFORE UPDATE ON benchapp_post
  FOR EACH ROW WHEN (NEW.id <> OLD.id) EXECUTE FUNCTION benchapp_refuse_id();
CREATE OR REPLACE TRIGGER benchapp_comment_id BEFORE UPDATE ON benchapp_comment
  FOR EACH ROW WHEN (NEW.id <> OLD.id) EXECUTE FUNCTION benchapp_refuse_id();


-- Counts on parents: authors of their posts. The same for posts and their comments follows below.
-- Foreign keys are checked at commit, so a child may be inserted before its parent. The parent counts its
-- children when it is inserted. The advisory lock lets no other transaction do so between the look for the
-- parent and the end of this transaction: it is shared by all that insert parents. The second UPDATE also
-- finds a parent that another transaction deleted and inserted again while the first one waited for it.
CREATE OR REPLACE FUNCTION benchapp_add_posts(an_author bigint, posts bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE benchapp_author SET post_count = post_count + posts WHERE id = an_author;
  IF NOT FOUND THEN
    IF posts > 0 THEN
      PERFORM pg_advisory_xact_lock('benchapp_author'::regclass::bigint);
    END IF;
    UPDATE benchapp_author SET post_count = post_count + posts WHERE id = an_author;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION benchapp_new_author() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared('benchapp_author'::regclass::bigint);
  NEW.post_count := (SELECT count(*) FROM benchapp_post WHERE author_id = NEW.id);
  RETURN NEW;
END $$;

-- Parents are locked in the order of their ids: single statements do not deadlock.
CREATE OR REPLACE FUNCTION benchapp_count_posts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  change record;
BEGIN
  FOR change IN SELECT author_id AS id, count(*) AS posts FROM changed GROUP BY author_id ORDER BY author_id LOOP
    PERFORM benchapp_add_posts(change.id, CASE TG_OP WHEN 'INSERT' THEN change.posts ELSE -change.posts END);
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION benchapp_move_posts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  change record;
BEGIN
  FOR change IN
    SELECT id, sum(posts) AS posts
    FROM (SELECT author_id AS id, -1 AS posts FROM before UNION ALL SELECT author_id, 1 FROM after) AS moved
    GROUP BY id HAVING sum(posts) <> 0 ORDER BY id
  LOOP
    PERFORM benchapp_add_posts(change.id, change.posts);
  END LOOP;
  RETURN NULL;
END $$;

-- A save() of an instance that was read a while ago writes an old count: the stored one stays. The functions
-- above write from within a trigger.
CREATE OR REPLACE FUNCTION benchapp_keep_post_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.post_count := OLD.post_count;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER benchapp_author_new BEFORE INSERT ON benchapp_author
  FOR EACH ROW EXECUTE FUNCTION benchapp_new_author();
CREATE OR REPLACE TRIGGER benchapp_post_added AFTER INSERT ON benchapp_post
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_posts();
CREATE OR REPLACE TRIGGER benchapp_post_removed AFTER DELETE ON benchapp_post
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_posts();
CREATE OR REPLACE TRIGGER benchapp_post_moved AFTER UPDATE ON benchapp_post
  REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION benchapp_move_posts();
CREATE OR REPLACE TRIGGER benchapp_author_keep BEFORE UPDATE ON benchapp_author
  FOR EACH ROW WHEN (NEW.post_count <> OLD.post_count AND pg_trigger_depth() = 0)
  EXECUTE FUNCTION benchapp_keep_post_count();


-- Counts on parents: posts of their comments.
CREATE OR REPLACE FUNCTION benchapp_add_comments(a_post bigint, comments bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE benchapp_post SET comment_count = comment_count + comments WHERE id = a_post;
  IF NOT FOUND THEN
    IF comments > 0 THEN
      PERFORM pg_advisory_xact_lock('benchapp_post'::regclass::bigint);
    END IF;
    UPDATE benchapp_post SET comment_count = comment_count + comments WHERE id = a_post;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION benchapp_new_post() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared('benchapp_post'::regclass::bigint);
  NEW.comment_count := (SELECT count(*) FROM benchapp_comment WHERE post_id = NEW.id);
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION benchapp_count_comments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  change record;
BEGIN
  FOR change IN SELECT post_id AS id, count(*) AS comments FROM changed GROUP BY post_id ORDER BY post_id LOOP
    PERFORM benchapp_add_comments(change.id, CASE TG_OP WHEN 'INSERT' THEN change.comments ELSE -change.comments END);
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION benchapp_move_comments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  change record;
BEGIN
  FOR change IN
    SELECT id, sum(comments) AS comments
    FROM (SELECT post_id AS id, -1 AS comments FROM before UNION ALL SELECT post_id, 1 FROM after) AS moved
    GROUP BY id HAVING sum(comments) <> 0 ORDER BY id
  LOOP
    PERFORM benchapp_add_comments(change.id, change.comments);
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION benchapp_keep_comment_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.comment_count := OLD.comment_count;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER benchapp_post_new BEFORE INSERT ON benchapp_post
  FOR EACH ROW EXECUTE FUNCTION benchapp_new_post();
CREATE OR REPLACE TRIGGER benchapp_comment_added AFTER INSERT ON benchapp_comment
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_comments();
CREATE OR REPLACE TRIGGER benchapp_comment_removed AFTER DELETE ON benchapp_comment
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_count_comments();
CREATE OR REPLACE TRIGGER benchapp_comment_moved AFTER UPDATE ON benchapp_comment
  REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION benchapp_move_comments();
CREATE OR REPLACE TRIGGER benchapp_post_keep BEFORE UPDATE ON benchapp_post
  FOR EACH ROW WHEN (NEW.comment_count <> OLD.comment_count AND pg_trigger_depth() = 0)
  EXECUTE FUNCTION benchapp_keep_comment_count();
