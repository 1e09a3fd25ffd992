"""Repairs of faults in Django's cache backends and in pymemcache, each with a link to the fault."""
