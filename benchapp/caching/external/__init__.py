"""Caches of other programs: the site marks the responses to store, and purges stale ones."""
