"""spacy_elmo.encode: a vector for each text, by a pipeline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
import torch.nn.functional as F
from pipelines import pipeline, shared
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo import ElmoEmbedder, encode
from spacy_elmo.errors import SettingsError

TEXTS = ["He sat on the bank. It rained.", "", "A  bank's   rates", "  "]


@pytest.fixture(scope="module")
def embedder(golden: Path) -> ElmoEmbedder:
    return ElmoEmbedder(golden / "random_a")


def test_means_of_words(embedder: ElmoEmbedder) -> None:
    nlp = shared()
    vectors = encode(nlp, TEXTS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors):
        words = [token.text for token in nlp.make_doc(text) if not token.is_space]
        expected = embedder.embed_sentence(words).astype(np.float64).mean(0).sum(0) / max(1, len(words))
        np.testing.assert_allclose(vector, expected, atol=1e-5)
    assert not vectors[[1, 3]].any()
    np.testing.assert_allclose(encode(nlp, TEXTS, batch_size=np.int64(1)), vectors, atol=1e-5)
    np.testing.assert_allclose(encode(nlp, TEXTS[0]), vectors[0], atol=1e-5)
    assert encode(nlp, []).shape == (0, embedder.options.width)
    np.testing.assert_array_equal(encode(nlp, np.array(TEXTS)), vectors)  # strings of numpy
    tensor = encode(nlp, TEXTS, normalize_embeddings=True, convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor, F.normalize(torch.from_numpy(vectors), dim=1), atol=1e-6)
    assert isinstance(encode(nlp, TEXTS[0], convert_to_numpy=False), torch.Tensor)


def test_pipes_before_run_and_pipes_after_do_not() -> None:
    nlp = pipeline()

    def after(doc: Doc) -> Doc:
        raise AssertionError

    Language.component("test_encoding_after", func=after)
    whole = encode(nlp, TEXTS)
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("test_encoding_after")
    sentences = encode(nlp, TEXTS)
    first, second = encode(nlp, "He sat on the bank."), encode(nlp, "It rained.")
    np.testing.assert_allclose(sentences[0], (first * 6 + second * 3) / 9, atol=1e-5)
    assert np.abs(sentences[0] - whole[0]).max() > 1e-4
    assert nlp.pipe_names == ["sentencizer", "elmo", "test_encoding_after"]


def test_docs_and_a_mix_of_ones_own(embedder: ElmoEmbedder) -> None:
    nlp = pipeline(store="mix", attr="own", scalar_mix_parameters=[0.0, 0.0, 50.0])
    last = embedder.embed_sentence(["A", "bank"])[-1]
    np.testing.assert_allclose(encode(nlp, [nlp.make_doc("A bank")])[0], last.mean(0), atol=1e-5)


def test_the_pipe_that_is_meant(golden: Path) -> None:
    nlp = pipeline()
    nlp.add_pipe("elmo", name="other", config={"attr": "other", "model": {"bilm": str(golden / "random_b")}})
    for name, message in ((None, "several elmo pipes, elmo, other"), ("third", "'third'.*elmo, other")):
        with pytest.raises(SettingsError, match=message):
            encode(nlp, TEXTS, elmo=name)
    np.testing.assert_allclose(
        encode(nlp, TEXTS[2], elmo="other"), ElmoEmbedder(golden / "random_b").encode("A bank's rates"), atol=1e-5
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((shared(), None), "the texts are None"),
        ((shared(), {"a": 1}), "the texts are {'a': 1}"),
        ((shared(), b"a"), r"texts\[0\] is 97"),
        ((shared(), ["a", None]), r"texts\[1\] is None.*a string or a Doc"),
        ((shared(), [["a", "bank"]]), r"texts\[0\] is \['a', 'bank'\]"),
        ((None, TEXTS), r"the pipeline is None. .* spacy\.load"),
        ((TEXTS, "en"), r"the pipeline is .* spacy\.load"),
        ((shared(), TEXTS, 0), "batch_size is 0"),
        ((shared(), TEXTS, "3"), "batch_size is '3'"),
        ((spacy.blank("xx"), TEXTS), "no elmo pipe; the pipeline has no pipes"),
    ],
)
def test_what_can_not_be_used(arguments: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        encode(*arguments)


def test_texts_that_fail() -> None:
    nlp = pipeline()

    def fail(doc: Doc) -> Doc:
        if doc.text.startswith("A"):
            raise ValueError
        return doc

    Language.component("test_encoding_fail", func=fail)
    nlp.add_pipe("test_encoding_fail", first=True)
    nlp.set_error_handler(lambda *given: None)
    with pytest.raises(SettingsError, match="3 docs came out of the pipeline for 4 texts"):
        encode(nlp, TEXTS)
