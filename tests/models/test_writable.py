"""Pipelines whose arrays are read-only, as Ray hands them around (spaCy's issue 13506)."""

import pickle
from typing import Any

import pytest
from tasks import TEXTS, elmo_block, examples, tok2vec, with_tasks


def through_shared_memory(thing: Any) -> Any:
    """A copy whose arrays are read-only."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    assert buffers
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


@pytest.mark.slow
@pytest.mark.parametrize("block", [elmo_block(), tok2vec(output=True), tok2vec("characters")])
def test_a_pipeline_of_read_only_arrays_predicts_the_same(block: dict[str, Any]) -> None:
    nlp = with_tasks("tagger", "parser", "ner", block=block)
    nlp.initialize(lambda: examples(nlp))
    nlp.update(examples(nlp), sgd=nlp.create_optimizer())
    copied = through_shared_memory(nlp)
    again = through_shared_memory(copied)
    for text in TEXTS:
        assert nlp(text).to_json() == copied(text).to_json() == again(text).to_json()
    assert [doc.to_json() for doc in copied.pipe(TEXTS)] == [doc.to_json() for doc in nlp.pipe(TEXTS)]
