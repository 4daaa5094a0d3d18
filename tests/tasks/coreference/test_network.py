"""The network against the formulas of Lee et al. 2017 on whole vectors, span by span and pair by pair."""

import pytest
import torch

from spacy_elmo.tasks.coreference.model import CoreferenceNetwork, Words

TOKENS, WIDTH, MOST = 9, 5, 4


@pytest.fixture
def network() -> CoreferenceNetwork:
    torch.manual_seed(0)
    return CoreferenceNetwork(width=WIDTH, lstm_width=3, hidden_width=6, max_width=MOST).double()


@pytest.fixture
def words(network: CoreferenceNetwork) -> Words:
    return network.read(torch.randn(TOKENS, WIDTH, dtype=torch.float64), [4, 2, 3])


def head(words: Words, start: int, end: int) -> torch.Tensor:
    weights = words.attention[start:end, 0] / words.attention[start:end].sum()
    return (weights[:, None] * words.inputs[start:end]).sum(0)


def test_each_sentence_is_read_alone(network: CoreferenceNetwork, words: Words) -> None:
    alone = network.read(words.inputs[4:6], [2])
    torch.testing.assert_close(alone.states, words.states[4:6])
    weights = network.attention(words.states).softmax(0)
    torch.testing.assert_close(words.attention / words.attention.sum(), weights, rtol=1e-6, atol=1e-6)


def test_scores_of_spans(network: CoreferenceNetwork, words: Words) -> None:
    scores = network.score_spans(words)
    assert scores.shape == (MOST, TOKENS)
    layer = torch.cat([network.mention_start.weight, network.mention_end.weight, network.mention_head.weight], dim=1)
    for width in range(MOST):
        for start in range(TOKENS):
            end = start + width + 1
            if end > TOKENS:
                assert scores[width, start] == -torch.inf
                continue
            parts = torch.cat([words.states[start], words.states[end - 1], head(words, start, end)])
            hidden = layer @ parts + network.mention_start.bias + network.mention_width.weight[width]
            torch.testing.assert_close(scores[width, start], network.mention_score(hidden.relu())[0])


def test_fewer_tokens_than_the_widest_span(network: CoreferenceNetwork) -> None:
    scores = network.score_spans(network.read(torch.randn(2, WIDTH, dtype=torch.float64), [2]))
    assert scores.shape == (MOST, 2)
    assert torch.isfinite(scores).tolist() == [[True, True], [True, False], [False, False], [False, False]]


def test_vectors_of_spans(network: CoreferenceNetwork, words: Words) -> None:
    spans = [(0, 1), (2, 4), (5, 9), (8, 9)]
    starts, ends = torch.tensor(spans).T
    vectors = network.span_vectors(words, starts, ends)
    for vector, (start, end) in zip(vectors, spans):
        parts = torch.cat([words.states[start], words.states[end - 1], head(words, start, end)])
        expected = (network.span(parts) + network.span_width.weight[end - start - 1]).relu()
        torch.testing.assert_close(vector, expected)


def test_scores_of_pairs(network: CoreferenceNetwork) -> None:
    vectors = torch.randn(3, 6, dtype=torch.float64)
    index = torch.tensor([[1, 0], [2, 1]])
    distance, same = torch.tensor([[0, 1], [6, 5000]]), torch.tensor([[0, 1], [1, 0]])
    scores = network.score_pairs(vectors[1:], vectors, index, distance, same)
    buckets = [[0, 1], [2, 9]]  # 0, 1 to 2, 3 to 6, ..., 511 and more
    layer = torch.cat([network.pair_mention.weight, network.pair_antecedent.weight, network.pair_product.weight], dim=1)
    for row in range(2):
        for column in range(2):
            one, two = vectors[1 + row], vectors[index[row, column]]
            hidden = layer @ torch.cat([one, two, one * two]) + network.pair_mention.bias
            hidden = hidden + network.pair_distance.weight[buckets[row][column]]
            hidden = hidden + network.pair_same.weight[same[row, column]]
            torch.testing.assert_close(scores[row, column], network.pair_score(hidden.relu())[0])
