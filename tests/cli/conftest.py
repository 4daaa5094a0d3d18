"""What the tests of commands share."""

from pathlib import Path

import pytest


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Four lines with the word bank."""
    path = tmp_path / "text.txt"
    path.write_text("We sat on the bank .\nThe bank lent us money .\nNo word .\nThe old bank\n", encoding="utf8")
    return path
