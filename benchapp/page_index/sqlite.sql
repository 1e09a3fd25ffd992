-- The page index in SQLite; benchapp/page_index/__init__.py explains the method.
-- One writer at a time: a block is one row that is updated. SQLite has triggers for each row only.

CREATE TABLE IF NOT EXISTS benchapp_pageblock (
  list text NOT NULL,       -- the table whose rows are counted
  bits integer NOT NULL,    -- 8 for blocks of 256 ids, 16 for blocks of 65,536
  block integer NOT NULL,   -- id >> bits
  rows integer NOT NULL,
  PRIMARY KEY (list, bits, block)
) WITHOUT ROWID;

-- Blocks.

CREATE TRIGGER benchapp_author_insert AFTER INSERT ON benchapp_author
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('benchapp_author', 8, NEW.id >> 8, 1), ('benchapp_author', 16, NEW.id >> 16, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER benchapp_author_delete AFTER DELETE ON benchapp_author
BEGIN
  UPDATE benchapp_pageblock SET rows = rows - 1 WHERE list = 'benchapp_author' AND bits = 8 AND block = OLD.id >> 8;
  UPDATE benchapp_pageblock SET rows = rows - 1 WHERE list = 'benchapp_author' AND bits = 16 AND block = OLD.id >> 16;
  DELETE FROM benchapp_pageblock WHERE list = 'benchapp_author' AND bits = 8 AND block = OLD.id >> 8 AND rows = 0;
  DELETE FROM benchapp_pageblock WHERE list = 'benchapp_author' AND bits = 16 AND block = OLD.id >> 16 AND rows = 0;
END;

CREATE TRIGGER benchapp_post_insert AFTER INSERT ON benchapp_post
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('benchapp_post', 8, NEW.id >> 8, 1), ('benchapp_post', 16, NEW.id >> 16, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER benchapp_post_delete AFTER DELETE ON benchapp_post
BEGIN
  UPDATE benchapp_pageblock SET rows = rows - 1 WHERE list = 'benchapp_post' AND bits = 8 AND block = OLD.id >> 8;
  UPDATE benchapp_pageblock SET rows = rows - 1 WHERE list = 'benchapp_post' AND bits = 16 AND block = OLD.id >> 16;
  DELETE FROM benchapp_pageblock WHERE list = 'benchapp_post' AND bits = 8 AND block = OLD.id >> 8 AND rows = 0;
  DELETE FROM benchapp_pageblock WHERE list = 'benchapp_post' AND bits = 16 AND block = OLD.id >> 16 AND rows = 0;
END;

CREATE TRIGGER benchapp_comment_insert AFTER INSERT ON benchapp_comment
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('benchapp_comment', 8, NEW.id >> 8, 1), ('benchapp_comment', 16, NEW.id >> 16, 1)
  ON CONFLICT (list, bits, block) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER benchapp_comment_delete AFTER DELETE ON benchapp_comment
BEGIN
  UPDATE benchapp_pageblock SET rows = rows - 1 WHERE list = 'benchapp_comment' AND bits = 8 AND block = OLD.id >> 8;
  UPDATE benchapp_pageblock SET rows = rows - 1 WHERE list = 'benchapp_comment' AND bits = 16 AND block = OLD.id >> 16;
  DELETE FROM benchapp_pageblock WHERE list = 'benchapp_comment' AND bits = 8 AND block = OLD.id >> 8 AND rows = 0;
  DELETE FROM benchapp_pageblock WHERE list = 'benchapp_comment' AND bits = 16 AND block = OLD.id >> 16 AND rows = 0;
END;

-- Ids do not change: the counts of a parent would have to follow its children from one id to the other.

CREATE TRIGGER benchapp_author_id BEFORE UPDATE OF id ON benchapp_author WHEN NEW.id IS NOT OLD.id
BEGIN
  SELECT RAISE(ABORT, 'benchapp_author: an id cannot be changed; insert a new row and delete the old one');
END;

CREATE TRIGGER benchapp_post_id BEFORE UPDATE OF id ON benchapp_post WHEN NEW.id IS NOT OLD.id
BEGIN
  SELECT RAISE(ABORT, 'benchapp_post: an id cannot be changed; insert a new row and delete the old one');
END;

CREATE TRIGGER benchapp_comment_id BEFORE UPDATE OF id ON benchapp_comment WHEN NEW.id IS NOT OLD.id
BEGIN
  SELECT RAISE(ABORT, 'benchapp_comment: an id cannot be changed; insert a new row and delete the old one');
END;

-- Counts on parents. While a trigger changes one, an entry of the list 'counting' says so to the trigger that
-- undoes other changes: a save() of an instance that was read a while ago writes an old count.

-- Counts on parents: authors of their posts.
CREATE TRIGGER benchapp_post_added AFTER INSERT ON benchapp_post
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_author SET post_count = post_count + 1 WHERE id = NEW.author_id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
CREATE TRIGGER benchapp_post_removed AFTER DELETE ON benchapp_post
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_author SET post_count = post_count - 1 WHERE id = OLD.author_id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
CREATE TRIGGER benchapp_post_moved AFTER UPDATE OF author_id ON benchapp_post WHEN NEW.author_id IS NOT OLD.author_id
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_author SET post_count = post_count - 1 WHERE id = OLD.author_id;
  UPDATE benchapp_author SET post_count = post_count + 1 WHERE id = NEW.author_id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
-- Foreign keys are checked at commit: a child may be inserted before its parent.
CREATE TRIGGER benchapp_author_new AFTER INSERT ON benchapp_author
WHEN NEW.post_count <> 0 OR EXISTS (SELECT 1 FROM benchapp_post WHERE author_id = NEW.id)
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_author SET post_count = (SELECT count(*) FROM benchapp_post WHERE author_id = NEW.id) WHERE id = NEW.id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
CREATE TRIGGER benchapp_author_keep AFTER UPDATE OF post_count ON benchapp_author
WHEN NEW.post_count <> OLD.post_count AND NOT EXISTS (SELECT 1 FROM benchapp_pageblock WHERE list = 'counting')
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_author SET post_count = OLD.post_count WHERE id = NEW.id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;

-- Counts on parents: posts of their comments.
CREATE TRIGGER benchapp_comment_added AFTER INSERT ON benchapp_comment
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_post SET comment_count = comment_count + 1 WHERE id = NEW.post_id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
CREATE TRIGGER benchapp_comment_removed AFTER DELETE ON benchapp_comment
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_post SET comment_count = comment_count - 1 WHERE id = OLD.post_id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
CREATE TRIGGER benchapp_comment_moved AFTER UPDATE OF post_id ON benchapp_comment WHEN NEW.post_id IS NOT OLD.post_id
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_post SET comment_count = comment_count - 1 WHERE id = OLD.post_id;
  UPDATE benchapp_post SET comment_count = comment_count + 1 WHERE id = NEW.post_id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
-- Foreign keys are checked at commit: a child may be inserted before its parent.
CREATE TRIGGER benchapp_post_new AFTER INSERT ON benchapp_post
WHEN NEW.comment_count <> 0 OR EXISTS (SELECT 1 FROM benchapp_comment WHERE post_id = NEW.id)
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_post SET comment_count = (SELECT count(*) FROM benchapp_comment WHERE post_id = NEW.id) WHERE id = NEW.id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
CREATE TRIGGER benchapp_post_keep AFTER UPDATE OF comment_count ON benchapp_post
WHEN NEW.comment_count <> OLD.comment_count AND NOT EXISTS (SELECT 1 FROM benchapp_pageblock WHERE list = 'counting')
BEGIN
  INSERT INTO benchapp_pageblock VALUES ('counting', 0, 0, 0);
  UPDATE benchapp_post SET comment_count = OLD.comment_count WHERE id = NEW.id;
  DELETE FROM benchapp_pageblock WHERE list = 'counting';
END;
