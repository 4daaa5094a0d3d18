"""The network gives the same as ESIM's formulas in numpy, one pair at a time."""

import numpy as np
import torch

from spacy_elmo.tasks.entailment.model import Esim

WIDTH, HIDDEN, LABELS = 5, 6, 3
Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    exp = np.exp(x - x.max(1, keepdims=True))
    return exp / exp.sum(1, keepdims=True)


def bilstm(weights: dict[str, Array], name: str, words: Array) -> Array:
    directions = []
    for way, rows in (("forwards", words), ("backwards", words[::-1])):
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w, u, b, c = (weights[f"{name}.{way}.0.{part}_l0"] for part in parts)
        state = cell = np.zeros(HIDDEN // 2)
        outputs = []
        for row in rows:
            i, f, g, o = np.split(w @ row + u @ state + b + c, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            state = sigmoid(o) * np.tanh(cell)
            outputs.append(state)
        directions.append(np.array(outputs[:: -1 if way == "backwards" else 1]))
    return np.concatenate(directions, axis=1)


def linear(weights: dict[str, Array], name: str, x: Array) -> Array:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def compare(weights: dict[str, Array], words: Array, aligned: Array) -> Array:
    features = np.concatenate([words, aligned, words - aligned, words * aligned], axis=1)
    return np.maximum(linear(weights, "comparison", features), 0)


def scores_of(weights: dict[str, Array], premise: Array, hypothesis: Array) -> Array:
    a, b = bilstm(weights, "encoder", premise), bilstm(weights, "encoder", hypothesis)
    similarity = a @ b.T
    composed_a = bilstm(weights, "composition", compare(weights, a, softmax(similarity) @ b))
    composed_b = bilstm(weights, "composition", compare(weights, b, softmax(similarity.T) @ a))
    pooled = [composed_a.mean(0), composed_a.max(0), composed_b.mean(0), composed_b.max(0)]
    return linear(weights, "output", np.tanh(linear(weights, "hidden", np.concatenate(pooled))))


def test_it_is_esim() -> None:
    torch.manual_seed(0)
    network = Esim(WIDTH, HIDDEN // 2, LABELS).double().eval()
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    rng = np.random.default_rng(0)
    premises = [3 * rng.normal(size=(length, WIDTH)) for length in (4, 1, 7)]
    hypotheses = [3 * rng.normal(size=(length, WIDTH)) for length in (2, 5, 1)]
    rows = [*premises, *hypotheses]
    with torch.no_grad():
        got = network(torch.from_numpy(np.concatenate(rows)), [len(row) for row in rows], 0.9)
    expected = [scores_of(weights, premise, hypothesis) for premise, hypothesis in zip(premises, hypotheses)]
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


def test_dropout_in_training_alone() -> None:
    torch.manual_seed(0)
    network, words = Esim(6, 4, 3), torch.randn(5, 6)
    network.eval()
    assert torch.equal(network(words, [3, 2], 0.5), network(words, [3, 2], 0.0))
    network.train()
    assert not torch.equal(network(words, [3, 2], 0.5), network(words, [3, 2], 0.5))
    torch.testing.assert_close(network(words, [3, 2], 0.0), network.eval()(words, [3, 2], 0.0))
