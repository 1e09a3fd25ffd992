"""The site's rows in Django's admin."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchapp.models import Author, Comment
from tests.app.conftest import PASSWORD, Rows, make_rows


@pytest.fixture
def staff(db: None) -> Client:
    return superuser()


def superuser() -> Client:
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


def test_view_on_site_leads_to_the_row(staff: Client, rows: Rows):
    newest = rows.post.comments.order_by("id")[54]  # on the third page of the post
    for row, target in (
        (rows.author, f"/authors/{rows.author.pk}/"),
        (rows.post, f"/posts/{rows.post.pk}/"),
        (newest, f"/posts/{rows.post.pk}/page/3/#comment-{newest.pk}"),
    ):
        html = staff.get(f"/admin/benchapp/{row._meta.model_name}/{row.pk}/change/").content.decode()
        link = re.search(r'<a href="([^"]+)" class="viewsitelink">', html)[1]
        assert staff.get(link)["Location"] == f"http://testserver{target}"


SORTED = [("author", "post_count"), ("post", "published"), ("post", "views"), ("post", "comment_count")]


@pytest.mark.parametrize(("table", "field"), SORTED)
@pytest.mark.parametrize("order", ["", "-"])
def test_a_list_is_sorted_by_an_index_and_not_counted(sqlite_site: str, table: str, field: str, order: str):
    make_rows()
    staff = superuser()
    model = apps.get_model("benchapp", table)
    number = list(site._registry[model].list_display).index(field) + 1
    with CaptureQueriesContext(connection) as queries:
        page = staff.get(f"/admin/benchapp/{table}/?o={order}{number}")
    expected = model.objects.order_by(f"{order}{field}", "-id").values_list("pk", flat=True)[:50]
    shown = [row.pk for row in page.context["cl"].result_list]
    assert shown == list(expected) and page.context["cl"].result_count == model.objects.count()
    for query in queries:
        assert f'COUNT(*) AS "__count" FROM "benchapp_{table}"' not in query["sql"]
        if f'FROM "benchapp_{table}"' in query["sql"]:
            plan = plan_of(query["sql"])
            assert f"post_{field}" in plan or f"author_{field}" in plan, plan
            assert "TEMP B-TREE FOR ORDER BY" not in plan.replace("LAST TERM OF ORDER BY", ""), plan


def plan_of(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.parametrize(("table", "sortable"), [("author", 1), ("post", 3), ("comment", 0)])
def test_a_list_offers_no_order_without_an_index(staff: Client, rows: Rows, table: str, sortable: int):
    html = staff.get(f"/admin/benchapp/{table}/").content.decode()
    assert len(re.findall(r'class="sortable ', html)) == sortable


def test_posts_are_filtered_by_time(staff: Client, rows: Rows):
    page = staff.get("/admin/benchapp/post/?published__gte=2024-07-01+00:00:00Z&published__lt=2024-08-01+00:00:00Z")
    assert page.context["cl"].result_count == 9
    assert "list_filter" not in vars(site._registry[Comment])


@pytest.mark.parametrize(("table", "count"), [("author", "post_count"), ("post", "comment_count")])
def test_counts_are_shown_and_cannot_be_changed(staff: Client, rows: Rows, table: str, count: str):
    pk = rows.author.pk if table == "author" else rows.post.pk
    html = staff.get(f"/admin/benchapp/{table}/{pk}/change/").content.decode()
    assert '<div class="readonly">55</div>' in html
    assert f'name="{count}"' not in html


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
