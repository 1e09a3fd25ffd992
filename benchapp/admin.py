"""The site's rows in Django's admin."""

from __future__ import annotations

from functools import cached_property

from django.contrib import admin
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from benchapp.models import Author, Comment, Post
from benchapp.pagination import TablePaginator, total

# Parameters of a list that leave no row out.
UNFILTERED = {PAGE_VAR, ORDER_VAR, IS_POPUP_VAR, TO_FIELD_VAR}


class SortedPaginator(Paginator):
    """Pages of a whole table in another order than by id."""

    @cached_property
    def count(self) -> int:
        return total(self.object_list.model)


class RowsAdmin(admin.ModelAdmin):
    """A table of millions of rows: sorted and filtered only if an index makes that cheap.

    The page index counts the rows unless a filter is active; a search shows no total.
    """

    ordering = ["-id"]
    sortable_by: list[str] = []
    show_full_result_count = False
    list_per_page = 50

    def get_paginator(
        self,
        request: HttpRequest,
        queryset: QuerySet,
        per_page: int,
        orphans: int = 0,
        allow_empty_first_page: bool = True,
    ) -> Paginator:
        """A paginator without COUNT, except for filtered rows: the page index knows whole tables only."""
        if not UNFILTERED.issuperset(request.GET):
            return super().get_paginator(request, queryset, per_page, orphans, allow_empty_first_page)
        paginator = SortedPaginator if ORDER_VAR in request.GET else TablePaginator
        return paginator(queryset, per_page, orphans, allow_empty_first_page)


@admin.register(Author)
class AuthorAdmin(RowsAdmin):
    list_display = ["name", "city", "joined", "post_count"]
    sortable_by = ["post_count"]
    search_fields = ["name"]
    readonly_fields = ["post_count"]


@admin.register(Post)
class PostAdmin(RowsAdmin):
    list_display = ["title", "author", "published", "views", "comment_count"]
    list_filter = ["published"]
    list_select_related = ["author"]
    sortable_by = ["published", "views", "comment_count"]
    raw_id_fields = ["author"]
    search_fields = ["title"]
    readonly_fields = ["comment_count"]


@admin.register(Comment)
class CommentAdmin(RowsAdmin):
    list_display = ["name", "post", "created", "rating"]
    list_select_related = ["post"]
    raw_id_fields = ["post", "user"]
    search_fields = ["name"]
