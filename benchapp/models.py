"""Authors, posts and comments."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone

from benchapp.pagination import PER_PAGE, page_url


class ChildCount(models.PositiveIntegerField):
    """A number of children that triggers of the database maintain (`benchapp.page_index`), whatever writes the rows.

    To Django it is generated: no INSERT or UPDATE names it, so that saving an instance that was read a while ago does
    not put an old count back, and a new instance reads it when it is asked for. To migrations it is a plain column.
    """

    generated = True
    referenced_fields = frozenset()  # of which Django computes nothing here

    def __init__(self, **options: Any):
        super().__init__(**{"default": 0, "db_default": 0, "editable": False, **options})

    def deconstruct(self) -> Any:
        """The field as migrations know it."""
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.PositiveIntegerField", args, options


class Author(models.Model):
    """Somebody who writes posts."""

    name = models.CharField(max_length=80)
    city = models.CharField(max_length=60)
    bio = models.TextField(blank=True)
    joined = models.DateField(default=timezone.localdate)
    post_count = ChildCount(help_text="Posts of this author; maintained by triggers.")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["post_count"], name="author_post_count")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("author", args=[self.pk])


class Post(models.Model):
    """An article of an author."""

    # No index of its own: the one in Meta begins with the author.
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="posts", db_index=False)
    title = models.CharField(max_length=120)
    body = models.TextField()
    published = models.DateTimeField(default=timezone.now)
    views = models.PositiveIntegerField(default=0, db_default=0)
    comment_count = ChildCount(help_text="Comments on this post; maintained by triggers.")

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["author", "id"], name="post_author"),
            models.Index(fields=["published"], name="post_published"),
            models.Index(fields=["views"], name="post_views"),
            models.Index(fields=["comment_count"], name="post_comment_count"),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("post", args=[self.pk])


class Comment(models.Model):
    """What a reader says of a post, with a rating.

    `author` is the account that wrote it, if there is one; `name` is what it was called then, and stays when it goes.
    """

    post = models.ForeignKey(Post, on_delete=models.CASCADE, related_name="comments", db_index=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        related_name="comments",
        null=True,
        blank=True,
        db_index=False,
    )
    name = models.CharField(max_length=80)
    body = models.TextField()
    created = models.DateTimeField(default=timezone.now)
    rating = models.PositiveSmallIntegerField(validators=[MinValueValidator(1), MaxValueValidator(5)])

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(rating__gte=1, rating__lte=5), name="comment_rating_1_to_5"),
        ]
        indexes = [
            models.Index(fields=["post", "id"], name="comment_post"),
            # Only comments of accounts are in it: finding those of one is cheap, and loading a million others, too.
            models.Index(fields=["author"], name="comment_author", condition=models.Q(author__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.post_id}"

    def get_absolute_url(self) -> str:
        """The comment on its page of the post, where the oldest comment is the first; takes one query."""
        earlier = Comment.objects.filter(post=self.post_id, id__lt=self.pk).count()
        page = page_url(reverse("post", args=[self.post_id]), earlier // PER_PAGE + 1)
        return f"{page}#comment-{self.pk}"
