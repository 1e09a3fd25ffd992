"""Authors, posts and comments."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone

from benchapp.fields import ChildCount
from benchapp.pagination import PER_PAGE, page_url


class NoRows(models.Manager):
    """A manager without rows."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().none()


class Author(models.Model):
    """Somebody who writes posts."""

    name = models.CharField(max_length=80)
    city = models.CharField(max_length=60)
    bio = models.TextField(blank=True)
    joined = models.DateField(default=timezone.localdate)
    post_count = ChildCount(children="posts", help_text="Posts of this author; maintained by triggers.")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["post_count"], name="author_post_count")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("author", args=[self.pk])


class Post(models.Model):
    """An article of an author."""

    # No separate index: the one in Meta begins with the author.
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="posts", db_index=False)
    title = models.CharField(max_length=120)
    body = models.TextField()
    published = models.DateTimeField(default=timezone.now)
    views = models.PositiveIntegerField(default=0, db_default=0)
    comment_count = ChildCount(children="comments", help_text="Comments on this post; maintained by triggers.")

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
    """A reader's comment on a post, with a rating.

    `user` is the author's account, if any; `name` is the author's name at that time, and stays when the account goes.
    """

    post = models.ForeignKey(Post, on_delete=models.CASCADE, related_name="comments", db_index=False)
    user = models.ForeignKey(
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
            models.Index(fields=["user"], name="comment_user", condition=models.Q(user__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.post_id}"

    def get_absolute_url(self) -> str:
        """The comment on its page of the post, the oldest comment first; takes one query."""
        comments = Comment.objects.using(self._state.db)
        earlier = comments.filter(post=self.post_id, id__lt=self.pk).count()
        page = page_url(reverse("post", args=[self.post_id]), earlier // PER_PAGE + 1)
        return f"{page}#comment-{self.pk}"


class PageBlock(models.Model):
    """The number of rows in a block of ids of a table: `id >> bits` is `block` (`benchapp.page_index`).

    Triggers write the rows. A fixture leaves them out: `dumpdata` takes the rows of the default manager.
    """

    pk = models.CompositePrimaryKey("list", "bits", "block")
    list = models.CharField(max_length=63)  # the table whose rows are counted
    bits = models.PositiveSmallIntegerField()
    block = models.BigIntegerField()
    rows = models.BigIntegerField()

    objects = models.Manager()
    left_out = NoRows()

    class Meta:
        default_manager_name = "left_out"

    def __str__(self) -> str:
        return f"{self.list}, ids from {self.block << self.bits}: {self.rows}"
