"""Thinc's ops decide what the arrays are and where the network lives: the same tests on the CPU and on a GPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import NumpyOps, Ops, get_ops, use_ops
from thinc.util import has_cupy_gpu

from spacy_elmo import tfhub_outputs

TEXTS = ["We sat on the bank .", "", " ", "bank \n bank"]


class Marked(np.ndarray):
    """An array that tells where it came from."""


class MarkingOps(NumpyOps):
    """The CPU's ops, with arrays of their own kind."""

    def asarray3f(self, data: Any, *, dtype: Any = "float32") -> Any:
        return super().asarray3f(data, dtype=dtype).view(Marked)


@pytest.fixture(params=["numpy", "marking", "cupy"])
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    if request.param == "cupy" and not has_cupy_gpu:
        pytest.skip("there is no GPU that cupy sees")
    with use_ops("cupy" if request.param == "cupy" else "numpy"):
        yield MarkingOps() if request.param == "marking" else get_ops(request.param)


def build(ops: Ops, **config: Any) -> Language:
    nlp = pipeline(**config)
    nlp.get_pipe("elmo").model.ops = ops
    return nlp


def on_cpu(ops: Ops, array: Any) -> np.ndarray:
    return np.asarray(ops.to_numpy(array))


def test_layers_are_the_ops_arrays(ops: Ops) -> None:
    nlp, plain = build(ops), pipeline()
    for doc in nlp.pipe(TEXTS):
        expected = plain(doc.text)
        kind = Marked if isinstance(ops, MarkingOps) else ops.xp.ndarray
        assert type(doc._.elmo_layers) is kind
        for name in ("elmo", "elmo_layers"):
            np.testing.assert_allclose(on_cpu(ops, doc._.get(name)), on_cpu(ops, expected._.get(name)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["layers", "layers_float16", "mix"])
def test_docs_with_the_ops_arrays_are_written_and_read(ops: Ops, store: str) -> None:
    nlp = build(ops, store=store)
    doc = nlp(TEXTS[0])
    copy = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    np.testing.assert_allclose(on_cpu(ops, copy._.elmo), on_cpu(ops, doc._.elmo), atol=1e-6)


def test_vectors_and_outputs(ops: Ops) -> None:
    nlp = build(ops, set_vectors=True)
    doc = nlp(TEXTS[0])
    assert doc.similarity(doc[2:4]) == pytest.approx(doc[2:4].similarity(doc))
    np.testing.assert_allclose(on_cpu(ops, tfhub_outputs(doc)["default"]), on_cpu(ops, doc._.elmo).mean(0), atol=1e-5)


@pytest.mark.slow
def test_a_pipeline_is_saved_and_loaded(ops: Ops) -> None:
    nlp = build(ops)
    other = build(ops)
    other.from_bytes(nlp.to_bytes())
    np.testing.assert_allclose(on_cpu(ops, other("a b")._.elmo), on_cpu(ops, nlp("a b")._.elmo), atol=1e-6)
