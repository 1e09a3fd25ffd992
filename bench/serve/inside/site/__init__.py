"""The probes that know the kit's own site: they write its rows, name its URLs, check its database."""
