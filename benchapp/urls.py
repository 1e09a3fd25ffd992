"""URLs of the site. Page numbers are in the path, so that only the path is the key of a page in every cache."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path, register_converter

from benchapp import views


class PositiveConverter:
    """A number from 1 that fits a 64-bit column, without sign and leading zero: each page has one URL."""

    regex = "[1-9][0-9]{0,17}"

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


register_converter(PositiveConverter, "positive")

urlpatterns = [
    path("", views.HomePage.as_view(), name="home"),
    path("authors/", views.AuthorList.as_view(), name="authors"),
    path("authors/page/<positive:number>/", views.AuthorList.as_view(), name="authors_page"),
    path("authors/jump/", views.Jump.as_view(list_page=views.AuthorList), name="authors_jump"),
    path("authors/<positive:pk>/", views.AuthorPage.as_view(), name="author"),
    path("authors/<positive:pk>/page/<positive:number>/", views.AuthorPage.as_view(), name="author_page"),
    path("authors/<positive:pk>/jump/", views.Jump.as_view(list_page=views.AuthorPage), name="author_jump"),
    path("posts/", views.PostList.as_view(), name="posts"),
    path("posts/page/<positive:number>/", views.PostList.as_view(), name="posts_page"),
    path("posts/jump/", views.Jump.as_view(list_page=views.PostList), name="posts_jump"),
    path("posts/<positive:pk>/", views.PostPage.as_view(), name="post"),
    path("posts/<positive:pk>/page/<positive:number>/", views.PostPage.as_view(), name="post_page"),
    path("posts/<positive:pk>/jump/", views.Jump.as_view(list_page=views.PostPage), name="post_jump"),
    path("posts/<positive:pk>/comment/", views.WriteComment.as_view(), name="comment"),
    path("comments/", views.CommentList.as_view(), name="comments"),
    path("comments/page/<positive:number>/", views.CommentList.as_view(), name="comments_page"),
    path("comments/jump/", views.Jump.as_view(list_page=views.CommentList), name="comments_jump"),
    path("login/", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("robots.txt", views.Robots.as_view(), name="robots"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]
