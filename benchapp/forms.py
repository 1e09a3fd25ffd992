"""The form under a post."""

from __future__ import annotations

from django import forms
from django.core.validators import MaxLengthValidator

from benchapp.models import Comment

MAX_COMMENT = 2_000  # characters, as a browser counts them
RATINGS = [
    ("", "Choose a rating"),
    (5, "5 · superb"),
    (4, "4 · good"),
    (3, "3 · fair"),
    (2, "2 · weak"),
    (1, "1 · poor"),
]


class TextareaLengthValidator(MaxLengthValidator):
    """Counts UTF-16 code units, as browsers do for `maxlength`.

    https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#attr-fe-maxlength
    """

    def clean(self, x: str) -> int:
        return len(x.encode("utf-16-le", "surrogatepass")) // 2


class TextareaField(forms.CharField):
    """Text of several lines with `\\n` between them: browsers send `\\r\\n`, and count it as one character."""

    def to_python(self, value: object) -> str:
        text = super().to_python(value)
        return text.replace("\r\n", "\n").replace("\r", "\n")


class CommentForm(forms.ModelForm):
    """A comment with its rating; the view sets the author and the post."""

    body = TextareaField(
        label="Your comment",
        validators=[TextareaLengthValidator(MAX_COMMENT)],
        widget=forms.Textarea(attrs={"rows": 5, "maxlength": MAX_COMMENT}),
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
