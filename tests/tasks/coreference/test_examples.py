"""Training targets and the loss, against torch's gradients."""

import numpy as np
import pytest
import spacy
import torch
from coreference_cases import examples
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.tasks.coreference.annotations import PREFIX, annotate
from spacy_elmo.tasks.coreference.component import Targets, gold_mentions, loss_of, targets_of
from spacy_elmo.tasks.coreference.model import Scores

INF = float("inf")
SCORES = Scores(
    np.array([[0, 1], [0, 2], [2, 3], [4, 5], [6, 7]]),
    np.array([0.5, -1.0, 2.0, -3.0, 90.0], dtype=np.float32),
    np.array([0, 2, 3, 4]),
    np.array([[-1, -1], [0, -1], [1, 0], [2, 1]]),
    np.array([[-INF, -INF], [0.3, -INF], [-0.2, 1.5], [4.0, -90.0]], dtype=np.float32),
)


def test_targets() -> None:
    gold = {(0, 1): 0, (2, 3): 1, (6, 7): 1, (1, 3): 2}
    targets = targets_of(SCORES, gold)
    assert targets.mentions.tolist() == [1, 0, 1, 0, 1]
    assert targets.corefer.tolist() == [[0, 0], [0, 0], [0, 0], [0, 1]]
    assert targets_of(Scores.empty(), {}).corefer.shape == (0, 1)


@pytest.mark.parametrize("corefer", [[[0, 0], [0, 0], [0, 0], [0, 1]], [[0, 0], [1, 0], [1, 1], [0, 0]]])
def test_the_loss_and_its_gradient(corefer: list[list[int]]) -> None:
    targets = Targets(np.array([1.0, 0, 1, 0, 0]), np.array(corefer, dtype=float))
    loss, gradient = loss_of(SCORES, targets)
    mentions, pairs = (
        torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for array in (SCORES.mention_scores, SCORES.pair_scores)
    )
    everything = torch.cat([torch.zeros(4, 1), pairs], dim=1)
    right = torch.tensor([[not any(row), *row] for row in corefer], dtype=torch.bool)
    marginal = everything.masked_fill(~right, -INF).logsumexp(1) - everything.logsumexp(1)
    entropy = torch.nn.functional.binary_cross_entropy_with_logits(
        mentions, torch.tensor(targets.mentions), reduction="sum"
    )
    expected = (entropy - marginal.sum()) / 4
    expected.backward()
    assert loss == pytest.approx(expected.item())
    np.testing.assert_allclose(gradient.mention_scores, mentions.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient.pair_scores, np.nan_to_num(pairs.grad.numpy()), rtol=1e-6, atol=1e-12)


def test_a_doc_without_spans() -> None:
    loss, gradient = loss_of(Scores.empty(), targets_of(Scores.empty(), {}))
    assert loss == 0
    assert gradient.pair_scores.shape == (0, 1)


def test_mentions_with_other_tokens() -> None:
    """What does not begin and end with tokens of the predicted doc can't be learned, and is left out."""
    nlp = spacy.blank("en")
    reference = Doc(nlp.vocab, words=["Anna", "'s", "dog", "barks"], spaces=[False, True, True, False])
    annotate(reference, [[(0, 1)], [(0, 3)]])
    predicted = Doc(nlp.vocab, words=["Anna's", "dog", "barks"], spaces=[True, True, False])
    assert gold_mentions(Example(predicted, reference), PREFIX) == {(0, 2): 1}


def test_mentions_with_other_blanks() -> None:
    """spaCy pairs docs whose texts differ in whitespace: words without blanks known, for example, and a raw text."""
    nlp = spacy.blank("en")
    reference = Doc(nlp.vocab, words=["Anna", "met", "an", "old", "man", ".", "She", "liked", "him", "."])
    annotate(reference, [[(0, 1), (6, 7)], [(2, 5), (8, 9)]])
    mentions = ["Anna", "an old man", "She", "him"]
    for text in ("Anna met an old man. She liked him.", "\n Anna  met an old man .\n\nShe liked\thim.", reference.text):
        predicted = nlp.make_doc(text)
        gold = gold_mentions(Example(predicted, reference), PREFIX)
        assert [predicted[start:end].text for start, end in sorted(gold)] == mentions
        assert [gold[place] for place in sorted(gold)] == [0, 1, 0, 1]


def test_the_clusters_of_a_doc() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    gold = gold_mentions(examples(nlp)[0], PREFIX)
    assert gold == {(0, 1): 0, (6, 7): 0, (2, 5): 1, (8, 9): 1, (10, 11): 2}
