"""Authors, posts and comments.

Triggers of the database (`benchapp.page_index`) maintain two fields, whatever writes the rows: `post_count` and
`comment_count`. Code reads them and never sets them; an instance that was just created has to be read again
(`refresh_from_db`) to know them.
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone


class Author(models.Model):
    """Somebody who writes posts."""

    name = models.CharField(max_length=80)
    city = models.CharField(max_length=60)
    bio = models.TextField(blank=True)
    joined = models.DateField(default=timezone.localdate)
    post_count = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Posts of this author; maintained by triggers."
    )

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["post_count"], name="author_post_count")]

    def __str__(self) -> str:
        return self.name


class Post(models.Model):
    """An article of an author."""

    # No index of its own: the one in Meta begins with the author.
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="posts", db_index=False)
    title = models.CharField(max_length=120)
    body = models.TextField()
    published = models.DateTimeField(default=timezone.now)
    views = models.PositiveIntegerField(default=0, db_default=0)
    comment_count = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="Comments on this post; maintained by triggers."
    )

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


class Comment(models.Model):
    """What a reader says of a post, with a rating; `name` is what the reader was called then."""

    post = models.ForeignKey(Post, on_delete=models.CASCADE, related_name="comments", db_index=False)
    name = models.CharField(max_length=80)
    body = models.TextField()
    created = models.DateTimeField(default=timezone.now)
    rating = models.PositiveSmallIntegerField(validators=[MinValueValidator(1), MaxValueValidator(5)])

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(rating__gte=1, rating__lte=5), name="comment_rating_1_to_5"),
        ]
        indexes = [models.Index(fields=["post", "id"], name="comment_post")]

    def __str__(self) -> str:
        return f"{self.name} on {self.post_id}"
