"""ElmoEmbedder.elmo_bilm, with AllenNLP's interface and the embedder's state."""

from pathlib import Path

import numpy as np
import pytest
from elmo_cases import SENTENCES

from spacy_elmo import ElmoEmbedder, batch_to_ids

IDS = batch_to_ids(SENTENCES)


@pytest.fixture
def stateful(golden: Path) -> ElmoEmbedder:
    return ElmoEmbedder(golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5", stateful=True)


def top(embedder: ElmoEmbedder) -> list[np.ndarray]:
    return [layers[-1] for layers in embedder.embed_batch(SENTENCES)]


def same(got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return all(np.allclose(a, b, atol=1e-5) for a, b in zip(got, expected, strict=True))


def test_the_interface_of_allennlp(stateful: ElmoEmbedder) -> None:
    first, second = top(stateful), top(stateful)
    assert not same(first, second)
    network = stateful.elmo_bilm
    assert (network.num_layers, network.get_output_dim(), stateful.cuda_device) == (3, 32, -1)
    network.reset_states()
    for expected in (first, second):  # the network carries the state on, and so does the embedder after it
        layers = network(IDS)["activations"][2].numpy()
        assert same([row[1 : len(words) + 1] for row, words in zip(layers, SENTENCES)], expected)
    stateful.reset_states()
    network(IDS)
    assert same(top(stateful), second)


def test_its_state_is_the_embedders(stateful: ElmoEmbedder) -> None:
    """As AllenNLP's users write it: each access may make the network anew."""
    first, second = top(stateful), top(stateful)
    assert stateful.elmo_bilm._elmo_lstm._states is not None
    stateful.elmo_bilm._elmo_lstm._states = None
    assert same(top(stateful), first)
    stateful.elmo_bilm._elmo_lstm.reset_states()
    assert same(top(stateful), first)
    assert same(top(stateful), second)
    stateful.elmo_bilm._elmo_lstm.stateful = False
    assert not stateful.stateful
    assert same(top(stateful), first)
    assert same(top(stateful), first)
