"""The network's parts against torch's own, and rows that do not depend on the others of their batch."""

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from spacy_elmo.tasks.answers.model import AnswersNetwork, Similarity

LENGTHS = torch.tensor([4, 7, 1])


def test_similarity_is_one_weight_vector_over_both_and_their_product() -> None:
    torch.manual_seed(0)
    similarity, first, second = Similarity(4), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    weight = torch.cat([similarity.of_first.weight[0], similarity.of_second.weight[0], similarity.of_both])
    scores = similarity(first, second)
    assert scores.shape == (2, 3, 5)
    for row, i, j in ((0, 0, 0), (1, 2, 4), (1, 0, 3)):
        a, b = first[row, i], second[row, j]
        torch.testing.assert_close(scores[row, i, j], weight @ torch.cat([a, b, a * b]))


def arguments(rows: list[tuple[int, int]], dropout: float = 0.0) -> tuple[Any, ...]:
    """The network's arguments for rows of these numbers of question and window tokens, in a batch."""
    generator = torch.Generator().manual_seed(1)
    vectors = {row: torch.randn(sum(row), 6, generator=generator) for row in ((3, 5), (1, 9), (4, 2))}
    starts = [sum(map(sum, rows[:i])) for i in range(len(rows))]
    return (
        torch.cat([vectors[row] for row in rows]),
        pad_sequence([start + torch.arange(row[0]) for start, row in zip(starts, rows)], batch_first=True),
        pad_sequence([start + row[0] + torch.arange(row[1]) for start, row in zip(starts, rows)], batch_first=True),
        pad_sequence([torch.arange(row[0]) % 2 * 1.0 for row in rows], batch_first=True),
        pad_sequence([torch.arange(row[1]) % 3 * 0.5 for row in rows], batch_first=True),
        torch.tensor([row[0] for row in rows]),
        torch.tensor([row[1] for row in rows]),
        dropout,
    )


@pytest.mark.parametrize("self_attention", [True, False])
def test_rows_do_not_depend_on_their_batch(self_attention: bool) -> None:
    torch.manual_seed(0)
    network = AnswersNetwork(6, 4, self_attention)
    rows = [(3, 5), (1, 9), (4, 2)]
    together = network(*arguments(rows))
    assert together.shape == (3, 9, 2)
    for scores, row in zip(together, rows):
        torch.testing.assert_close(scores[: row[1]], network(*arguments([row]))[0], atol=1e-5, rtol=1e-4)


def test_every_weight_learns_and_dropout_drops() -> None:
    torch.manual_seed(0)
    network = AnswersNetwork(6, 4, True)
    scores = network(*arguments([(3, 5)]))
    scores.log_softmax(dim=1)[0, 2].sum().backward()
    still = {name for name, value in network.named_parameters() if value.grad is None or not value.grad.any()}
    assert still <= {"start.bias", "end.bias"}  # what is added to all tokens changes no softmax
    assert not torch.equal(network(*arguments([(3, 5)], 0.5)), scores)
