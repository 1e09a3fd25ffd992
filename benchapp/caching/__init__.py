"""Caching strategies of the site.

`staleness` knows which pages a write makes stale and says so in one signal, after the transaction has
committed. Every layer that can be told connects to that signal; none asks what was written.
"""
