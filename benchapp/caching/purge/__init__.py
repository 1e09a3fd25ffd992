"""Purging the caches of other programs: over HTTP, by removing files, and by a generation file that they read."""
