"""Tables in memory, as dicts of columns and as DataFrames."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import EmbedColumns
from spacy_elmo.corpus.bilm import BiLMChoice, EmbeddingBiLM
from spacy_elmo.errors import CorpusError, SettingsError

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")
TEXTS = ["A dog isn't here.", "", "Yes."]
WORDS = [["A", "dog", "is", "n't", "here", "."], [], ["Yes", "."]]


@pytest.mark.parametrize("pickled", [False, True])
def test_a_dict_of_columns(pickled: bool) -> None:
    embed = EmbedColumns(bilm=BILM)
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


def test_lists_of_words_and_one_vector_a_text() -> None:
    embed = EmbedColumns("words", bilm=BILM, layers="top", sentence=True)
    found = embed({"words": WORDS})["vector"]
    layers = ElmoEmbedder(BILM).embed_batch(WORDS)
    assert not found[1].any()
    for i in (0, 2):
        np.testing.assert_allclose(found[i], layers[i][-1].mean(0), atol=1e-5)


@pytest.mark.parametrize("sentence", [False, True])
def test_the_type_is_that_which_was_asked_for(sentence: bool) -> None:
    """Of the row without words, too: one row of float32 would make all of a stacked column float32."""
    found = EmbedColumns("words", bilm=BILM, layers="top", dtype="float16", sentence=sentence)({"words": WORDS})
    column = found["vector" if sentence else "vectors"]
    assert {row.dtype for row in column} == {np.dtype(np.float16)}
    for row, layers in zip(column, ElmoEmbedder(BILM).embed_batch(WORDS)):
        top = layers[-1].sum(0) / max(1, layers.shape[1]) if sentence else layers[-1]
        np.testing.assert_allclose(row, top, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("words", [WORDS, WORDS[1:2], []])
def test_one_vector_a_text_is_one_array(words: list[list[str]], dtype: str) -> None:
    """So that the tables of an empty part and of others can be put together."""
    found = EmbedColumns("words", bilm=BILM, dtype=dtype, sentence=True)({"words": words})["vector"]
    assert found.shape == (len(words), ElmoEmbedder(BILM).options.width)
    assert found.dtype == dtype


def test_texts_are_split_as_the_language_says() -> None:
    text = "Das geht z.B. heute, d.h. jetzt, isn't it?"
    for lang in ("de", "en"):
        [tokens] = EmbedColumns(bilm=BILM, lang=lang)({"text": [text]})["tokens"]
        assert tokens == [token.text for token in spacy.blank(lang)(text)]


def test_a_frame() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = EmbedColumns(bilm=BILM)(pandas.DataFrame({"text": TEXTS}))
    assert list(frame.columns) == ["text", "tokens", "vectors"]
    assert [len(vectors) for vectors in frame["vectors"]] == [6, 0, 2]


def test_missing_texts_are_empty() -> None:
    embed = EmbedColumns(bilm=BILM, sentence=True, layers={"w": [0, 0, 0]})
    table = {"text": [TEXTS[0], None, TEXTS[2]]}
    found = embed(table)
    assert table["text"][1] is None
    assert list(found["tokens"]) == WORDS
    np.testing.assert_array_equal(found["vector"], embed({"text": TEXTS})["vector"])


def test_missing_texts_of_a_frame_are_empty() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    embed = EmbedColumns(bilm=BILM)
    for missing in (None, float("nan"), pandas.NA):
        frame = pandas.DataFrame({"text": [TEXTS[0], missing, TEXTS[2]]})
        assert list(embed(frame)["tokens"]) == WORDS


@pytest.mark.parametrize("table", ["text", [{"text": "secret"}], None])
def test_other_tables_are_refused(table: object) -> None:
    with pytest.raises(CorpusError, match="expected a dict of columns or a pandas DataFrame, got <class") as error:
        EmbedColumns(bilm=BILM)(table)
    assert "secret" not in str(error.value)


def test_a_table_of_arrow_is_refused() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with pytest.raises(CorpusError, match=r"got <class 'pyarrow\.lib\.Table'>\. Change it .* to_pydict"):
        EmbedColumns(bilm=BILM)(pyarrow.table({"text": ["a"]}))


def test_threads_load_the_bilm_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, load = [], BiLMChoice.load

    def slow_load(choice: BiLMChoice) -> EmbeddingBiLM:
        loads.append(choice)
        time.sleep(0.05)  # so that the other threads ask for it meanwhile
        return load(choice)

    monkeypatch.setattr(BiLMChoice, "load", slow_load)
    embed = EmbedColumns(bilm=BILM, sentence=True)
    with ThreadPoolExecutor(4) as threads:
        tables = list(threads.map(embed, [{"text": ["the bank"]}] * 4))
    assert len(loads) == 1
    for table in tables:
        np.testing.assert_array_equal(table["vector"], tables[0]["vector"])


def test_what_does_not_fit_is_refused() -> None:
    embed = EmbedColumns(bilm=BILM)
    with pytest.raises(CorpusError, match="the table has the columns other"):
        embed({"other": []})
    with pytest.raises(CorpusError, match="row 1 of the column 'text'"):
        embed({"text": ["a", 3]})
    for value, kind in ((b"the bank", "bytes"), ({"the": 1}, "dict")):
        with pytest.raises(CorpusError, match=f"row 0 of the column 'text' .*{kind}, not a text"):
            embed({"text": [value]})
    with pytest.raises(CorpusError, match=r"row 1 of the column 'text' .*surrogate"):
        embed({"text": ["a", "b \ud800"]})
    with pytest.raises(CorpusError, match=r"row 0 of the column 'text' .*blanks"):
        embed({"text": [["a b", "c"]]})
    with pytest.raises(SettingsError, match="the mix has 2 weights"):
        EmbedColumns(bilm=BILM, layers={"w": [0, 1]})({"text": ["a"]})
    with pytest.raises(SettingsError, match="layers is 'all'"):
        EmbedColumns(layers="all")
