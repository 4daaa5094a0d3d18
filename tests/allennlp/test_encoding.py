"""ElmoEmbedder.encode: a vector for each text."""

from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import CorpusError, ElmoError, SettingsError

TEXTS = ["He sat on the bank of the river.", "", "A bank raises its rates; others don't.", " \n", "Yes"]


@pytest.fixture(scope="module")
def embedder(golden: Path) -> ElmoEmbedder:
    return ElmoEmbedder(golden / "random_a")


def test_means_of_the_tokenizers_words(embedder: ElmoEmbedder) -> None:
    tokenizer = spacy.blank("en").tokenizer
    vectors = embedder.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, embedder.options.width)
    for text, vector in zip(TEXTS, vectors):
        words = [token.text for token in tokenizer(text) if not token.is_space]
        tokens = embedder.embed_sentence(words).astype(np.float64).mean(0)
        np.testing.assert_allclose(vector, tokens.sum(0) / max(1, len(words)), atol=1e-5)
    assert not vectors[[1, 3]].any()
    assert vectors[[0, 2, 4]].any(1).all()


def test_batches_make_no_difference(embedder: ElmoEmbedder) -> None:
    expected = embedder.encode(TEXTS)
    np.testing.assert_array_equal(embedder.encode(TEXTS), expected)
    for size in (1, 2, 4):
        np.testing.assert_allclose(embedder.encode(iter(TEXTS), batch_size=size), expected, atol=1e-5)


def test_one_text_gives_one_vector(embedder: ElmoEmbedder) -> None:
    vector = embedder.encode(TEXTS[0])
    assert vector.shape == (embedder.options.width,)
    np.testing.assert_allclose(vector, embedder.encode([TEXTS[0]])[0], atol=1e-5)
    assert embedder.encode([]).shape == (0, embedder.options.width)


def test_words_languages_and_blanks(embedder: ElmoEmbedder) -> None:
    words = embedder.encode([["don't", "stop."], "don't stop."], lang=None)
    np.testing.assert_allclose(words[0], words[1], atol=1e-5)
    assert np.abs(embedder.encode(["don't stop."])[0] - words[0]).max() > 1e-3


def test_a_stateful_embedder_carries_nothing(golden: Path, embedder: ElmoEmbedder) -> None:
    stateful = ElmoEmbedder(golden / "random_a", stateful=True)
    expected = embedder.embed_sentence(["a", "b"])
    stateful.encode(TEXTS)
    np.testing.assert_allclose(stateful.embed_sentence(["a", "b"]), expected, atol=1e-5)
    np.testing.assert_allclose(stateful.encode(TEXTS), embedder.encode(TEXTS), atol=1e-5)


def test_progress_is_counted(embedder: ElmoEmbedder, capsys: pytest.CaptureFixture[str]) -> None:
    embedder.encode(TEXTS, show_progress_bar="lines")
    assert "5/5" in capsys.readouterr().err
    embedder.encode(TEXTS)
    assert capsys.readouterr().err == ""


def test_strings_of_numpy(embedder: ElmoEmbedder) -> None:
    np.testing.assert_array_equal(embedder.encode(np.array(TEXTS)), embedder.encode(TEXTS))


def test_refusals(embedder: ElmoEmbedder) -> None:
    for texts, part in (
        (["a", None], "text 2 is None"),
        ([3], "text 1 is 3"),
        ([["a", 1]], "1"),
        (None, "the texts are None"),
        (b"a", "text 1 is 97"),
        (["a", "b \ud800"], "text 2 can't be tokenised.*surrogate"),
        (["!" * 3_000], "text 1 can't be tokenised"),
    ):
        with pytest.raises(ElmoError, match=part):
            embedder.encode(texts)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="batch_size is 0"):
        embedder.encode(TEXTS, batch_size=0)
    with pytest.raises(CorpusError, match="language"):
        embedder.encode(TEXTS, lang="none such")
