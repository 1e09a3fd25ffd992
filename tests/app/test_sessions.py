"""Pages of a session are private, with and without a layer; those of anonymous visitors stay everybody's."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.app.conftest import Rows, account


@pytest.mark.parametrize("variables", [{}, {"CACHING_SITE_MIDDLEWARE": "1"}, {"CACHING_VIEW_CACHE": "1"}])
def test_a_page_of_a_signed_in_visitor_is_private(rows: Rows, site_with, variables: dict[str, str]):
    with site_with(**variables):
        assert "Cache-Control" not in Client().get("/posts/")
        reader = account("margaret")
        said = {word.strip() for word in reader.get("/posts/")["Cache-Control"].split(",")}
        assert {"private", "no-cache"} <= said
        forged = Client()
        forged.cookies["sessionid"] = "forged"
        assert "no-cache" not in forged.get("/posts/").get("Cache-Control", "")
