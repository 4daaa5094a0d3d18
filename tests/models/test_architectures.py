"""ElmoTok2Vec: what it concatenates, its widths, and pipelines whose arrays are read-only."""

import pickle
from typing import Any

import numpy as np
import pytest
from tasks import TEXTS, add_task, elmo_block, tok2vec, train, with_tasks
from thinc.api import data_validation

from spacy_elmo.errors import SettingsError
from spacy_elmo.pipeline.mixes import learned_mixes


def block_with(elmo: Any, output_elmo: Any) -> dict[str, Any]:
    return tok2vec() | {"elmo": elmo, "output_elmo": output_elmo}


def test_elmo_at_the_output_alone() -> None:
    nlp = with_tasks("tagger", block=block_with(None, elmo_block()))
    losses = [train(nlp, updates)["tagger"] for updates in (1, 25)]
    assert losses[1] < losses[0]
    assert [mix.place for mix in learned_mixes(nlp)] == ["output"]
    tagger: Any = nlp.get_pipe("tagger")
    model = tagger.model.get_ref("tok2vec")
    doc = nlp("Paris likes green ham")
    (both,) = model.predict([doc])
    (h,) = model.get_ref("encode").predict(model.get_ref("embed").predict([doc]))
    (mixed,) = model.get_ref("output_elmo").predict([doc])
    np.testing.assert_array_equal(both, np.concatenate([h, mixed], axis=1))
    assert model.get_dim("nO") == both.shape[1]


def test_elmo_at_no_place() -> None:
    with pytest.raises(SettingsError, match=r"elmo and output_elmo .* are both null"):
        with_tasks("tagger", block=block_with(None, None))


def through_shared_memory(thing: Any) -> Any:
    """A copy whose arrays are read-only."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    assert buffers
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


@pytest.mark.slow
def test_a_pipeline_of_read_only_arrays_predicts_the_same() -> None:
    nlp = with_tasks("tagger", block=elmo_block())
    add_task(nlp, "parser", tok2vec(output=True))
    add_task(nlp, "ner", tok2vec("characters"))
    train(nlp, 1)
    copied = through_shared_memory(nlp)
    again = through_shared_memory(copied)
    for text in TEXTS:
        assert nlp(text).to_json() == copied(text).to_json() == again(text).to_json()
    assert [doc.to_json() for doc in copied.pipe(TEXTS)] == [doc.to_json() for doc in nlp.pipe(TEXTS)]


@pytest.mark.parametrize(
    "block",
    [tok2vec(), tok2vec(encode="none", output=True), tok2vec(encode="same_width"), elmo_block()],
    ids=["linear", "output", "same_width", "elmo"],
)
@pytest.mark.parametrize("frozen", [True, False])
def test_thinc_validates_what_passes_between_layers(block: dict[str, Any], frozen: bool) -> None:
    with data_validation(True):
        nlp = with_tasks("tagger", block=block, frozen=frozen)
        train(nlp, 1)
        assert pickle.loads(pickle.dumps(nlp))("Ham is  bad")._.elmo.shape == (4, 32)
