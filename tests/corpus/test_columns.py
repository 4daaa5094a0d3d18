"""Tables in memory, as dicts of columns and as DataFrames."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import EmbedColumns
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.errors import CorpusError, SettingsError
from spacy_elmo.inference import Embedder

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")
TEXTS = ["A dog is not here.", "", "Yes."]
WORDS = [["A", "dog", "is", "not", "here", "."], [], ["Yes", "."]]
COLUMNS: Any = partial(EmbedColumns, bilm=BILM, lang="xx")  # whose tokenizer is made in no time


@pytest.mark.parametrize("pickled", [False, True])
def test_a_dict_of_columns(pickled: bool) -> None:
    embed = COLUMNS()
    if pickled:
        embed({"text": ["x"]})
        embed = pickle.loads(pickle.dumps(embed))
    texts = np.array(TEXTS)
    texts.flags.writeable = False  # as those of Ray
    table = {"text": texts, "number": np.arange(3)}
    found = embed(table)
    assert list(table) == ["text", "number"]
    assert list(found) == ["text", "number", "tokens", "vectors"]
    assert list(found["tokens"]) == WORDS
    for vectors, layers in zip(found["vectors"], ElmoEmbedder(BILM).embed_batch(WORDS)):
        np.testing.assert_allclose(vectors, layers.mean(0), atol=1e-5)


@pytest.mark.parametrize("sentence", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_type_is_that_which_was_asked_for(sentence: bool, dtype: str) -> None:
    """Of the row without words, too: one row of float32 would make all of a stacked column float32."""
    found = COLUMNS("words", layers="top", dtype=dtype, sentence=sentence)({"words": WORDS})
    column = found["vector" if sentence else "vectors"]
    assert {row.dtype for row in column} == {np.dtype(dtype)}
    for row, layers in zip(column, ElmoEmbedder(BILM).embed_batch(WORDS)):
        top = layers[-1].sum(0) / max(1, layers.shape[1]) if sentence else layers[-1]
        np.testing.assert_allclose(row, top, atol=1e-3 if dtype == "float16" else 1e-5)


@pytest.mark.slow
def test_a_frame() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    embed = COLUMNS()
    for missing in ("", None, float("nan"), pandas.NA):  # a missing text is an empty one
        frame = embed(pandas.DataFrame({"text": [TEXTS[0], missing, TEXTS[2]]}))
        assert list(frame.columns) == ["text", "tokens", "vectors"]
        assert list(frame["tokens"]) == WORDS
        assert [len(vectors) for vectors in frame["vectors"]] == [6, 0, 2]
    assert len(COLUMNS(sentence=True, tokens_column=None)(frame)["vector"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("sentence", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_frame_without_a_word_has_the_types_of_others(sentence: bool, dtype: str) -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    embed = COLUMNS(sentence=sentence, dtype=dtype, tokens_column="words", vectors_column="elmo")
    frames = [pandas.DataFrame({"text": pandas.Series(texts, dtype=object)}) for texts in (["a b", ""], [], ["", None])]
    full, *others = (arrow.Table.from_pandas(embed(frame), preserve_index=False).schema for frame in frames)
    for name in ("words", "elmo"):
        assert [schema.field(name).type for schema in others] == [full.field(name).type] * 2
    found = embed({"text": []})
    assert [len(found[name]) for name in ("words", "elmo")] == [0, 0]
    assert found["elmo"].dtype == (dtype if sentence else object)


def test_threads_load_the_bilm_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, load = [], BiLMChoice.load

    def slow_load(choice: BiLMChoice) -> Embedder:
        loads.append(choice)
        time.sleep(0.05)  # so that the other threads ask for it meanwhile
        return load(choice)

    monkeypatch.setattr(BiLMChoice, "load", slow_load)
    embed = COLUMNS(sentence=True)
    with ThreadPoolExecutor(4) as threads:
        tables = list(threads.map(embed, [{"text": ["the bank"]}] * 4))
    assert len(loads) == 1
    for table in tables:
        np.testing.assert_array_equal(table["vector"], tables[0]["vector"])


def test_what_does_not_fit_is_refused() -> None:
    embed = COLUMNS()
    for table, message in (
        ([{"text": "secret"}], r"expected a dict of columns or a pandas DataFrame, got <class 'list'>\. Change"),
        ({"other": []}, "the table has the columns other"),
        ({"text": ["a", 3]}, "row 1 of the column 'text'"),
        ({"text": [b"the bank"]}, "row 0 of the column 'text' .*bank', which is not a text or a list of words"),
        ({"text": [{"the": 1}]}, "row 0 of the column 'text' .*the.*, which is not a text or a list of words"),
        ({"text": [["a", None]]}, "row 0 of the column 'text' .*a word is None. Expected a string"),
        ({"text": ["a", "b \ud800"]}, r"row 1 of the column 'text' .*surrogate"),
        ({"text": "a bank"}, "the column 'text' is 'a bank'. Expected one column .*map_batches"),
        ({"text": ["a"], "tokens": [[]]}, "the table has a column 'tokens', .* change tokens_column"),
        ({"text": ["a"], "vectors": [[]]}, "the table has a column 'vectors', .* change vectors_column"),
    ):
        with pytest.raises(CorpusError, match=message):
            embed(table)
    with pytest.raises(SettingsError, match="the mix has 2 weights"):
        COLUMNS(layers={"w": [0, 1]})({"text": ["a"]})
    with pytest.raises(SettingsError, match="are both 'x'"):
        COLUMNS(tokens_column="x", vectors_column="x")
    with pytest.raises(SettingsError, match="layers is 'all'"):
        EmbedColumns(layers="all")
