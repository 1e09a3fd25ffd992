"""The page stores: files, memcached, and uWSGI's shared memory."""
