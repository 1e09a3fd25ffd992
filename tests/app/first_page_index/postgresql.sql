CREATE TABLE IF NOT EXISTS benchapp_pageblock (
  list varchar(40) NOT NULL,  -- the table whose rows are counted
  bits smallint NOT NULL,     -- SMALL or LARGE
  block bigint NOT NULL,      -- id >> bits
  rows bigint NOT NULL,
  PRIMARY KEY (list, bits, block)
)
----
CREATE OR REPLACE FUNCTION benchapp_author_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT 'benchapp_author', bits, id >> bits, 1 * count(*)
  FROM changed CROSS JOIN (VALUES (8), (14)) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_author_insert AFTER insert ON benchapp_author
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_author_insert()
----
CREATE OR REPLACE FUNCTION benchapp_author_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT 'benchapp_author', bits, id >> bits, -1 * count(*)
  FROM changed CROSS JOIN (VALUES (8), (14)) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_author_delete AFTER delete ON benchapp_author
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_author_delete()
----
CREATE OR REPLACE FUNCTION benchapp_post_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT 'benchapp_post', bits, id >> bits, 1 * count(*)
  FROM changed CROSS JOIN (VALUES (8), (14)) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  
  PERFORM FROM benchapp_author WHERE id IN (SELECT author_id FROM changed) ORDER BY id FOR NO KEY UPDATE;
  UPDATE benchapp_author SET post_count = post_count + 1 * children.counted
  FROM (SELECT author_id, count(*) AS counted FROM changed GROUP BY author_id) AS children WHERE id = children.author_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_post_insert AFTER insert ON benchapp_post
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_post_insert()
----
CREATE OR REPLACE FUNCTION benchapp_post_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT 'benchapp_post', bits, id >> bits, -1 * count(*)
  FROM changed CROSS JOIN (VALUES (8), (14)) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  
  PERFORM FROM benchapp_author WHERE id IN (SELECT author_id FROM changed) ORDER BY id FOR NO KEY UPDATE;
  UPDATE benchapp_author SET post_count = post_count + -1 * children.counted
  FROM (SELECT author_id, count(*) AS counted FROM changed GROUP BY author_id) AS children WHERE id = children.author_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_post_delete AFTER delete ON benchapp_post
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_post_delete()
----
CREATE OR REPLACE FUNCTION benchapp_post_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM benchapp_author WHERE id IN (OLD.author_id, NEW.author_id) ORDER BY id FOR NO KEY UPDATE;
  UPDATE benchapp_author SET post_count = post_count + CASE id WHEN NEW.author_id THEN 1 ELSE -1 END
  WHERE id IN (OLD.author_id, NEW.author_id);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_post_moved AFTER UPDATE OF author_id ON benchapp_post
  FOR EACH ROW WHEN (OLD.author_id <> NEW.author_id) EXECUTE FUNCTION benchapp_post_moved()
----
CREATE OR REPLACE FUNCTION benchapp_comment_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT 'benchapp_comment', bits, id >> bits, 1 * count(*)
  FROM changed CROSS JOIN (VALUES (8), (14)) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  
  PERFORM FROM benchapp_post WHERE id IN (SELECT post_id FROM changed) ORDER BY id FOR NO KEY UPDATE;
  UPDATE benchapp_post SET comment_count = comment_count + 1 * children.counted
  FROM (SELECT post_id, count(*) AS counted FROM changed GROUP BY post_id) AS children WHERE id = children.post_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_comment_insert AFTER insert ON benchapp_comment
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_comment_insert()
----
CREATE OR REPLACE FUNCTION benchapp_comment_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO benchapp_pageblock AS stored (list, bits, block, rows)
  SELECT 'benchapp_comment', bits, id >> bits, -1 * count(*)
  FROM changed CROSS JOIN (VALUES (8), (14)) AS sizes (bits)
  GROUP BY bits, id >> bits ORDER BY bits, id >> bits
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = stored.rows + excluded.rows;
  
  PERFORM FROM benchapp_post WHERE id IN (SELECT post_id FROM changed) ORDER BY id FOR NO KEY UPDATE;
  UPDATE benchapp_post SET comment_count = comment_count + -1 * children.counted
  FROM (SELECT post_id, count(*) AS counted FROM changed GROUP BY post_id) AS children WHERE id = children.post_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_comment_delete AFTER delete ON benchapp_comment
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION benchapp_comment_delete()
----
CREATE OR REPLACE FUNCTION benchapp_comment_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM FROM benchapp_post WHERE id IN (OLD.post_id, NEW.post_id) ORDER BY id FOR NO KEY UPDATE;
  UPDATE benchapp_post SET comment_count = comment_count + CASE id WHEN NEW.post_id THEN 1 ELSE -1 END
  WHERE id IN (OLD.post_id, NEW.post_id);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER benchapp_comment_moved AFTER UPDATE OF post_id ON benchapp_comment
  FOR EACH ROW WHEN (OLD.post_id <> NEW.post_id) EXECUTE FUNCTION benchapp_comment_moved()
