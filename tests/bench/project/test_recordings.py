"""Recordings: what of a HAR file or an access log becomes a workload, and what is left out with a count."""

from __future__ import annotations

import json

import pytest

from bench.errors import BenchError
from bench.project import recordings

LINE = '192.0.2.1 - - [22/Nov/2026:12:00:{second:02} +0000] "{request}" {status} 512 "-" "Mozilla/5.0"\n'


def entry(url, second=0, method="GET", status=200):
    return {
        "startedDateTime": f"2026-11-22T12:00:{second:02}.000Z",
        "request": {"method": method, "url": url},
        "response": {"status": status},
    }


def har(tmp_path, *entries):
    path = tmp_path / "visit.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return path


def log(tmp_path, *requests):
    path = tmp_path / "access.log"
    path.write_text(
        "".join(LINE.format(second=i, request=it, status=status) for i, (it, status) in enumerate(requests))
    )
    return path


def test_a_har_file_gives_the_gets_to_its_own_host_with_their_times(tmp_path):
    found = recordings.har(
        har(
            tmp_path,
            entry("https://shop.example/"),
            entry("https://cdn.example/x.js", 1),
            entry("https://shop.example/cart?page=2", 3),
            entry("https://shop.example/cart", 4, method="POST", status=302),
        )
    )
    assert (found.paths, found.times_s) == (("/", "/cart?page=2"), (0.0, 3.0))
    assert found.notes == ("left out of visit.har: 1 requests to other hosts, 1 requests that are no GET",)


def test_a_url_that_is_no_text_is_one_line(tmp_path):
    with pytest.raises(BenchError, match=r"visit.har: no HAR file: .*; save one in a browser$"):
        recordings.har(har(tmp_path, entry(7)))


def test_an_access_log_gives_frequencies_and_order(tmp_path):
    found = recordings.access_log(
        log(
            tmp_path,
            ("GET / HTTP/1.1", 200),
            ("GET /a/ HTTP/1.1", 304),
            ("GET / HTTP/1.1", 200),
            ("GET /x HTTP/1.1", 404),
        )
    )
    assert (found.paths, found.times_s) == (("/", "/a/", "/"), (0.0, 1.0, 2.0))
    assert found.notes == (
        "left out of access.log: 1 requests without status 200, or whose path is not percent-encoded",
    )


def test_the_first_requests_are_those_that_began_first(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "MAX_REQUESTS", 2)
    slow, quick = entry("https://shop.example/slow/", 0), entry("https://shop.example/quick/", 1)
    later = entry("https://shop.example/later/", 2)
    found = recordings.har(har(tmp_path, quick, later, slow))
    assert (found.paths, found.times_s) == (("/slow/", "/quick/"), (0.0, 1.0))
    assert found.notes == ("left out of visit.har: 1 requests after the first 2",)


@pytest.mark.parametrize("query", ["token=x", "next=/&api_key=1", "sig=abc", "reset_code=1"])
def test_a_query_that_looks_like_a_secret_is_left_out_with_a_count(tmp_path, query):
    found = recordings.access_log(log(tmp_path, ("GET /?page=1 HTTP/1.1", 200), (f"GET /in?{query} HTTP/1.1", 200)))
    assert found.paths == ("/?page=1",)
    assert found.notes == ("left out of access.log: 1 requests whose query looks like a secret",)


def test_lines_of_another_format_are_counted(tmp_path):
    path = log(tmp_path, ("GET / HTTP/1.1", 200))
    path.write_text(path.read_text() + "nonsense\n")
    assert recordings.access_log(path).notes == ("left out of access.log: 1 lines of another format",)


def test_a_recording_without_a_get_is_one_line(tmp_path):
    for read, path in (
        (recordings.har, har(tmp_path, entry("https://shop.example/", method="POST"))),
        (recordings.har, har(tmp_path)),
        (recordings.access_log, log(tmp_path)),
    ):
        with pytest.raises(BenchError) as error:
            read(path)
        assert str(error.value) == f"{path}: no GET that was answered with 200: name another recording"


def test_a_file_that_is_no_recording_is_one_line(tmp_path):
    path = tmp_path / "x"
    path.write_text("nonsense")
    with pytest.raises(BenchError, match=r"no HAR file: JSONDecodeError: .*; save one in a browser"):
        recordings.har(path)
    with pytest.raises(BenchError, match="no line in the combined format: write the log with it, or name another log"):
        recordings.access_log(path)
    with pytest.raises(BenchError, match=r"nowhere: No such file or directory; correct its name in"):
        recordings.steps(tmp_path / "nowhere")
