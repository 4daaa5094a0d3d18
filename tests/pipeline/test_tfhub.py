import numpy as np
import pytest
from golden_files import read_golden
from pipelines import GOLDEN, pipeline
from spacy.tokens import Doc

from spacy_elmo import tfhub_outputs
from spacy_elmo.errors import NotEmbeddedError


def test_the_five_outputs() -> None:
    golden = read_golden(GOLDEN / "random_a")
    nlp = pipeline("random_a")
    outputs = tfhub_outputs(nlp(Doc(nlp.vocab, words=golden.sentences[0])))
    expected = golden.expected["zero_state/0"]
    close = {"rtol": 0, "atol": 1e-5}
    assert list(outputs) == ["word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "default"]
    np.testing.assert_allclose(outputs["word_emb"], golden.expected["word_emb"][0, : len(golden.sentences[0])], **close)
    np.testing.assert_allclose(outputs["lstm_outputs1"], expected[1], **close)
    np.testing.assert_allclose(outputs["lstm_outputs2"], expected[2], **close)
    np.testing.assert_allclose(outputs["elmo"], expected.mean(0), **close)
    np.testing.assert_allclose(outputs["default"], expected.mean((0, 1)), **close)


def test_an_output_for_each_lstm_layer() -> None:
    outputs = tfhub_outputs(pipeline("random_b")("a b"))
    assert [name for name in outputs if name.startswith("lstm")] == [f"lstm_outputs{k}" for k in (1, 2, 3)]


def test_whitespace_and_empty_docs() -> None:
    nlp = pipeline(attr="other")
    a, b = (tfhub_outputs(nlp(text), attr="other")["default"] for text in ("a \n b", "a b"))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
    for text in ("", " "):
        outputs = tfhub_outputs(nlp(text), attr="other")
        assert outputs["word_emb"].shape == (len(text), 16)
        assert outputs["default"].shape == (32,)
        assert not outputs["default"].any()


def test_without_layers() -> None:
    with pytest.raises(NotEmbeddedError, match="store"):
        tfhub_outputs(pipeline(store="mix")("a"))
    with pytest.raises(NotEmbeddedError, match="no elmo pipe"):
        tfhub_outputs(pipeline().make_doc("a"))
