"""The site's rows in Django's admin."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchapp.models import Author, Comment
from tests.app.conftest import PASSWORD, Rows


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("editor", password=PASSWORD))
    return client


@pytest.mark.parametrize("table", ["author", "post", "comment"])
def test_staff_list_search_and_edit_the_rows(staff: Client, rows: Rows, table: str):
    base = f"/admin/benchapp/{table}/"
    with CaptureQueriesContext(connection) as queries:
        assert staff.get(base).status_code == 200
    assert not [query["sql"] for query in queries if f'COUNT(*) AS "__count" FROM "benchapp_{table}"' in query["sql"]]
    for url in (f"{base}?p=2", f"{base}?q=5", f"{base}add/", f"{base}{rows.post.pk}/change/"):
        assert staff.get(url, follow=True).status_code == 200, url


def test_a_row_is_saved_and_its_counts_stay(staff: Client, rows: Rows):
    url = f"/admin/benchapp/author/{rows.author.pk}/change/"
    data = {"name": "Renamed", "city": "Lund", "bio": "", "joined": "2024-01-01"}
    assert staff.post(url, data).status_code == 302
    assert Author.objects.values_list("name", "post_count").get(pk=rows.author.pk) == ("Renamed", 55)


def test_a_comment_knows_its_account_and_outlives_it(reader: Client, rows: Rows):
    reader.post(f"/posts/{rows.post.pk}/comment/", {"body": "Yes.", "rating": 5})
    user = get_user_model().objects.get(username="margaret")
    assert Comment.objects.get(user=user).name == "margaret"
    user.delete()
    assert Comment.objects.filter(user=None, name="margaret").exists()
