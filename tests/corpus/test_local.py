"""Several processes on one machine: which error is told if one of them can't start."""

from pathlib import Path

import pytest

from spacy_elmo.corpus import embed, local
from spacy_elmo.corpus.documents import Shard
from spacy_elmo.errors import ProcessError, WeightsError

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")


@pytest.mark.slow
def test_an_error_in_the_file_of_code_is_told(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("class OwnError(Exception): pass\n\nraise OwnError('no such table')\n")
    (tmp_path / "text.txt").write_text("a b c\n" * 50)
    with pytest.raises(ProcessError, match=r"could not start \(OwnError: no such table\)\. .* code \(--code\) names"):
        embed(tmp_path / "text.txt", tmp_path / "out", format="spacy", bilm=BILM, workers=2, code=tmp_path / "code.py")


def test_an_error_of_the_package_stays_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = WeightsError("the weights are gone")
    monkeypatch.setattr(local, "_writer", error, raising=False)
    with pytest.raises(WeightsError) as told:
        local._make(Shard(0, []), tmp_path)
    assert told.value is error
