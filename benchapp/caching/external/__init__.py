"""Caches of other programs: the site says which responses they may store, and purges those that a write made stale."""
