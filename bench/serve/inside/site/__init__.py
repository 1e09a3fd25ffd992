"""Probes of the kit's own site: they write rows, use the site's URLs, check the database."""
