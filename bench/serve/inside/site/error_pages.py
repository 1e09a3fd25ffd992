"""The kit's own pages for errors, each with the name of its rendering."""

from __future__ import annotations

from bench.serve.inside.render_id import naming
from benchapp import views

bad_request = naming(views.bad_request)
server_error = naming(views.server_error)
