"""The tables of docs/scale.md are those that the script prints, and agree with sums by hand."""

from pathlib import Path

import pytest

from scripts.pages.scale_tables import hours, tables

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"


def test_the_page_has_the_tables() -> None:
    page = PAGE.read_text(encoding="utf8")
    for table in tables():
        assert table in page, "make the tables again: python -m scripts.pages.scale_tables"


def test_hours_by_hand() -> None:
    rate = 1 / (2 / 21_429 + 10e-6)  # of a core
    assert hours(1e9, 10, "en_mini", "float32", 1038) == (pytest.approx(1e9 / (160 * rate) / 3600), "cores")
    assert hours(1e12, 1000, "en_mini", "float32", 1000) == (pytest.approx(1e12 / 1e7 / 3600), "shared storage")
    assert hours(1e9, 1, "en_mini", "bfloat16", 5000) == (pytest.approx(1e9 / 1e5 / 3600), "disk")
