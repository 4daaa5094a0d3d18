"""Lines of plain files. tests/pretraining/text/test_reading.py tests compressed and damaged files."""

import io

import pytest

from spacy_elmo.formats import unpacking
from spacy_elmo.formats.unpacking import lines_of


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b"\n"]),
        (b"ab\r\nc\rd", [b"ab\r\n", b"c\rd"]),
        (b"1234\n12345\n12345", [b"1234\n", None, None]),
        (b"123456789\n\n1", [None, b"\n", b"1"]),
        (b"1234567890123\n1\n", [None, b"1\n"]),
    ],
)
def test_lines(content: bytes, lines: list[bytes | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "LONGEST_LINE", 4)
    assert list(lines_of(io.BytesIO(content))) == lines
