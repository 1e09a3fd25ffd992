"""Links with a query string, as a browser reads them."""

import pytest

from bench.serve.inside import inspect_links

HOST = "shop.example"


@pytest.mark.parametrize(
    ("html", "parameters"),
    [
        ('<a href="?page=2">next</a>', {"/blog/": ["page"]}),
        ('<a href="?page=2">next</a><![x[<p>', {"/blog/": ["page"]}),
        ("<A HREF='/blog/?page=2&amp;sort=price#top'>2</A>", {"/blog/": ["page", "sort"]}),
        ('<a href="//shop.example/news/?p=">', {"/news/": ["p"]}),
        ('<a href="https://shop.example/news/?p=1"><a href="/news/?q=1">', {"/news/": ["p", "q"]}),
        ('<a href="https://other.example/?page=2"><a href="mailto:a@b?subject=x"><a href="/blog/">', {}),
        ('<a href="http://[/?page=2"><a href><link href="/feed/?format=atom"><form action="?q=1">', {}),
    ],
)
def test_names_of_parameters_are_listed_by_the_path_that_a_link_leads_to(html, parameters):
    assert inspect_links.linked_parameters("/blog/", HOST, html) == parameters
