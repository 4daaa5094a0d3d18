"""Warnings of this package, as commands print them."""

import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.cli.console import plain_warnings
from spacy_elmo.errors import OtherLanguageWarning
from spacy_elmo.modules import loading

BILM = str(Path(__file__).parents[2] / "golden" / "random_a")


@pytest.mark.filterwarnings("always::spacy_elmo.errors.TruncatedWordsWarning")
@pytest.mark.parametrize(
    "arguments",
    [
        ("similar", BILM, "text.txt", "--word", "bank"),
        ("neighbours", "text.txt", "--query", "the bank", "--word", "bank", "--model", BILM),
    ],
)
def test_long_words_are_told_in_a_plain_line(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names no line of code, and no attribute of an object, which a user of the command does not have."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(f"the bank {'x' * 80}\nthe bank is\n", encoding="utf8")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    told = " ".join(result.stderr.split())
    assert "has 80 bytes in UTF-8, but the biLM reads the first 48 of a token" in told
    for part in ("Warning", ".py", "n_truncated"):
        assert part not in result.output
    assert "bytes" not in result.stdout


@pytest.mark.filterwarnings("always")
def test_other_warnings_are_shown_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with warnings.catch_warnings(record=True) as caught, plain_warnings():
        warnings.warn("of this package", OtherLanguageWarning, stacklevel=1)
        warnings.warn("of another one", UserWarning, stacklevel=1)
        warnings.warn_explicit("of its code", UserWarning, loading.__file__, 1)
    assert warnings.showwarning is before
    told = capsys.readouterr().err
    assert "of this package" in told
    assert "of its code" in told
    assert ".py" not in told
    assert [str(warning.message) for warning in caught] == ["of another one"]


@pytest.mark.filterwarnings("always")
def test_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with plain_warnings():
        warnings.warn("of this package", OtherLanguageWarning, stacklevel=1)


@pytest.mark.filterwarnings("always")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_warning_that_cannot_be_written_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf8", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        with plain_warnings():
            warnings.warn("of this package", OtherLanguageWarning, stacklevel=1)
        with suppress(OSError):  # closing writes what is left
            full.close()
