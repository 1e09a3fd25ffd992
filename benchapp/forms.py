"""The form under a post."""

from __future__ import annotations

from django import forms

from benchapp.models import Comment

MAX_COMMENT = 2_000  # characters
RATINGS = [(5, "5 · superb"), (4, "4 · good"), (3, "3 · fair"), (2, "2 · weak"), (1, "1 · poor")]


class CommentForm(forms.ModelForm):
    """A comment with its rating; the view sets its author and its post."""

    body = forms.CharField(
        label="Your comment",
        max_length=MAX_COMMENT,
        widget=forms.Textarea(attrs={"rows": 5}),
        error_messages={"required": "Write a few words before you post."},
    )
    rating = forms.TypedChoiceField(
        label="Rating",
        choices=RATINGS,
        coerce=int,
        error_messages={"required": "Choose a rating.", "invalid_choice": "Choose a rating from the list."},
    )

    class Meta:
        model = Comment
        fields = ["body", "rating"]
