"""The site's rows in Django's admin."""

from __future__ import annotations

from django.contrib import admin

from benchapp.models import Author, Comment, Post
from benchapp.pagination import TablePaginator


class RowsAdmin(admin.ModelAdmin):
    """A table of millions: counted by the page index while nothing filters it, and no count beside a search."""

    ordering = ["-id"]
    sortable_by = ()
    show_full_result_count = False
    list_per_page = 50

    def get_paginator(self, request, queryset, per_page, **options):
        """The page index knows whole tables only."""
        if queryset.query.where:
            return super().get_paginator(request, queryset, per_page, **options)
        return TablePaginator(queryset.order_by("-id"), per_page, **options)


@admin.register(Author)
class AuthorAdmin(RowsAdmin):
    list_display = ["name", "city", "joined", "post_count"]
    search_fields = ["name"]


@admin.register(Post)
class PostAdmin(RowsAdmin):
    list_display = ["title", "author", "published", "views", "comment_count"]
    list_select_related = ["author"]
    raw_id_fields = ["author"]
    search_fields = ["title"]


@admin.register(Comment)
class CommentAdmin(RowsAdmin):
    list_display = ["name", "post", "created", "rating"]
    list_select_related = ["post"]
    raw_id_fields = ["post", "user"]
    search_fields = ["name"]
