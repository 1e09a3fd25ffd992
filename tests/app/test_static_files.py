"""The plain files of the static benchmark, and what /static/ answers."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from django.conf import settings

STATIC = Path(settings.BASE_DIR) / "static"
DISHES = ("lentil soup", "baked trout", "onion tart", "leek pie", "barley stew", "stuffed peppers", "saffron rice")
BREADS = ("rye", "spelt", "sourdough", "potato bread", "flatbread")
SWEETS = ("plum cake", "rice pudding", "poached pears", "almond biscuits", "quince jelly", "custard")
LINES = 15_000


def ledger_line(number: int) -> str:
    """One line of static/large.txt: a supper at the long table, 100 bytes with its line feed."""
    day = date(1970, 1, 1) + timedelta(days=number)
    guests = 4 + number * number % 23
    menu = ", ".join((DISHES[number * 5 % 7], BREADS[number * 3 % 5], SWEETS[number * 7 % 11 % 6]))
    return f"{f'No. {number + 1:05d}  {day:%Y-%m-%d %a}  {guests:2d} at the table: {menu}.':<99}\n"


def test_small_file_is_exactly_99_bytes():
    assert (STATIC / "small.txt").stat().st_size == 99


def test_large_file_is_one_and_a_half_megabytes_of_the_ledger():
    text = (STATIC / "large.txt").read_bytes()
    assert len(text) == 1_500_000
    assert text.decode("ascii") == "".join(map(ledger_line, range(LINES)))
