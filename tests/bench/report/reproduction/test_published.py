"""published.toml has the four benchmarks with their figures."""

from __future__ import annotations

from bench.results import reproduction


def test_the_four_published_benchmarks_are_data_with_source_and_year():
    found = reproduction.benchmarks()
    assert {name: item["year"] for name, item in found.items()} == {
        "deployment-techniques": 2010,
        "cherokee-report": 2011,
        "caching": 2010,
        "static-servers": 2007,
    }
    assert all(item["source"] and item["title"] and item["rows"] for item in found.values())
    rows = {name: [row for row in item["rows"] if not row.get("added")] for name, item in found.items()}
    assert [row["times_none"] for row in rows["caching"]] == [1, 2.6, 75.7, 185, 247, 249]
    assert [row.get("requests_per_second_max") for row in rows["cherokee-report"]] == [
        16,
        40,
        65,
        70,
        105,
        178,
        263,
        5500,
    ]
    assert len(rows["deployment-techniques"]) == 6
    assert rows["static-servers"][0]["small_keep_alive_requests_per_second"] == 7816
