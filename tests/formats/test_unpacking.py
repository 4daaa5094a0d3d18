"""Lines of plain files. tests/pretraining/text/test_reading.py tests compressed and damaged files."""

import gzip
import io
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
import zstandard

from spacy_elmo.formats import unpacking
from spacy_elmo.formats.unpacking import lines_of, unpacked_size


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


@pytest.mark.parametrize(
    ("end", "pack"),
    [
        ("gz", gzip.compress),
        ("xz", partial(lzma.compress, preset=0)),  # the fastest
        ("zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_size_of_a_packed_file(end: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    text = Random(0).randbytes(5 * 2**20).hex().encode()  # 10 MiB
    (tmp_path / f"a.{end}").write_bytes(pack(text))
    assert unpacked_size(tmp_path / f"a.{end}") == pytest.approx(len(text), rel=0.05)
    (tmp_path / f"b.{end}").write_bytes(pack(text[:1000]))
    assert unpacked_size(tmp_path / f"b.{end}") == 1000
