"""Several processes on one machine: which error is told if one can't start, or if several shards fail."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.corpus import embed
from spacy_elmo.corpus import workers as local
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.manifest import ShardFacts
from spacy_elmo.corpus.reading import Shard
from spacy_elmo.corpus.shards import ShardSettings
from spacy_elmo.corpus.writing import Selection
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


class FailingPool:
    """In the place of a pool of processes: shards from number 1 on fail at once."""

    def __init__(self, *_: object) -> None:
        pass

    def submit(self, make: object, shard: Shard, folder: Path) -> "Future[ShardFacts]":
        future: Future[ShardFacts] = Future()
        if shard.number:
            future.set_exception(ValueError(f"shard {shard.number}"))
        else:
            future.set_result(ShardFacts(0, "part-000000.npy", 0, ""))
        return future

    def shutdown(self, **_: object) -> None:
        pass


@pytest.mark.parametrize(("n_read", "first"), [(8, "shard 1"), (3, "reading")])
def test_the_first_error_is_raised(n_read: int, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fourth shard is waited for before the fifth is read."""

    def shards() -> Iterator[Shard]:
        yield from (Shard(number, []) for number in range(n_read))
        raise ValueError("reading")

    monkeypatch.setattr(local, "ProcessPoolExecutor", FailingPool)
    settings = ShardSettings(BiLMChoice(BILM), "npy", Selection("mean"), None, False, False)
    done: list[Any] = []
    with pytest.raises(ValueError, match=first):
        local.run_workers(shards(), settings, 2, tmp_path, done.append, lambda *_: None)
    assert [facts.shard for facts in done] == [0]
