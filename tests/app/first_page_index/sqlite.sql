CREATE TABLE IF NOT EXISTS benchapp_pageblock (
  list varchar(40) NOT NULL,  -- the table whose rows are counted
  bits smallint NOT NULL,     -- SMALL or LARGE
  block bigint NOT NULL,      -- id >> bits
  rows bigint NOT NULL,
  PRIMARY KEY (list, bits, block)
)
----
CREATE TRIGGER benchapp_author_insert AFTER insert ON benchapp_author BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('benchapp_author', 8, NEW.id >> 8, 1), ('benchapp_author', 14, NEW.id >> 14, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  
END
----
CREATE TRIGGER benchapp_author_delete AFTER delete ON benchapp_author BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('benchapp_author', 8, OLD.id >> 8, -1), ('benchapp_author', 14, OLD.id >> 14, -1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  
END
----
CREATE TRIGGER benchapp_post_insert AFTER insert ON benchapp_post BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('benchapp_post', 8, NEW.id >> 8, 1), ('benchapp_post', 14, NEW.id >> 14, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  UPDATE benchapp_author SET post_count = post_count + 1 WHERE id = NEW.author_id;
END
----
CREATE TRIGGER benchapp_post_delete AFTER delete ON benchapp_post BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('benchapp_post', 8, OLD.id >> 8, -1), ('benchapp_post', 14, OLD.id >> 14, -1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  UPDATE benchapp_author SET post_count = post_count + -1 WHERE id = OLD.author_id;
END
----
CREATE TRIGGER benchapp_post_moved AFTER UPDATE OF author_id ON benchapp_post WHEN OLD.author_id <> NEW.author_id BEGIN
  UPDATE benchapp_author SET post_count = post_count - 1 WHERE id = OLD.author_id;
  UPDATE benchapp_author SET post_count = post_count + 1 WHERE id = NEW.author_id;
END
----
CREATE TRIGGER benchapp_comment_insert AFTER insert ON benchapp_comment BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('benchapp_comment', 8, NEW.id >> 8, 1), ('benchapp_comment', 14, NEW.id >> 14, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  UPDATE benchapp_post SET comment_count = comment_count + 1 WHERE id = NEW.post_id;
END
----
CREATE TRIGGER benchapp_comment_delete AFTER delete ON benchapp_comment BEGIN
  INSERT INTO benchapp_pageblock (list, bits, block, rows)
  VALUES ('benchapp_comment', 8, OLD.id >> 8, -1), ('benchapp_comment', 14, OLD.id >> 14, -1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + excluded.rows;
  UPDATE benchapp_post SET comment_count = comment_count + -1 WHERE id = OLD.post_id;
END
----
CREATE TRIGGER benchapp_comment_moved AFTER UPDATE OF post_id ON benchapp_comment WHEN OLD.post_id <> NEW.post_id BEGIN
  UPDATE benchapp_post SET comment_count = comment_count - 1 WHERE id = OLD.post_id;
  UPDATE benchapp_post SET comment_count = comment_count + 1 WHERE id = NEW.post_id;
END
