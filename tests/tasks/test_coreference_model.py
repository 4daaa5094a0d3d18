"""The network of coreference against the formulas of Lee et al. 2017 on whole vectors; docs in parts."""

from typing import Any

import numpy as np
import pytest
import spacy
import torch
from coreference_cases import TEXTS, bounds, trained
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.tasks.coreference import clusters_of
from spacy_elmo.tasks.coreference.model import CoreferenceNetwork, Part, Words, best_spans, spans_of, split_into_parts

TOKENS, WIDTH, MOST = 9, 5, 4


@pytest.fixture
def network() -> CoreferenceNetwork:
    torch.manual_seed(0)
    return CoreferenceNetwork(width=WIDTH, lstm_width=3, hidden_width=6, max_width=MOST).double()


@pytest.fixture
def words(network: CoreferenceNetwork) -> Words:
    return network.read(torch.randn(TOKENS, WIDTH, dtype=torch.float64), [4, 2, 3], 0.0)


def head(words: Words, start: int, end: int) -> torch.Tensor:
    weights = words.attention[start:end, 0] / words.attention[start:end].sum()
    return (weights[:, None] * words.inputs[start:end]).sum(0)


def test_each_sentence_is_read_alone(network: CoreferenceNetwork, words: Words) -> None:
    alone = network.read(words.inputs[4:6], [2], 0.0)
    torch.testing.assert_close(alone.states, words.states[4:6])
    weights = network.attention(words.states).softmax(0)
    torch.testing.assert_close(words.attention / words.attention.sum(), weights, rtol=1e-6, atol=1e-6)


def test_scores_of_spans(network: CoreferenceNetwork, words: Words) -> None:
    scores = network.score_spans(words, 0.0)
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
    scores = network.score_spans(network.read(torch.randn(2, WIDTH, dtype=torch.float64), [2], 0.0), 0.0)
    assert scores.shape == (MOST, 2)
    assert torch.isfinite(scores).tolist() == [[True, True], [True, False], [False, False], [False, False]]


def test_vectors_of_spans(network: CoreferenceNetwork, words: Words) -> None:
    spans = [(0, 1), (2, 4), (5, 9), (8, 9)]
    starts, ends = torch.tensor(spans).T
    vectors = network.span_vectors(words, starts, ends, 0.0)
    for vector, (start, end) in zip(vectors, spans):
        parts = torch.cat([words.states[start], words.states[end - 1], head(words, start, end)])
        expected = (network.span(parts) + network.span_width.weight[end - start - 1]).relu()
        torch.testing.assert_close(vector, expected)


def test_scores_of_pairs(network: CoreferenceNetwork) -> None:
    vectors = torch.randn(3, 6, dtype=torch.float64)
    index = torch.tensor([[1, 0], [2, 1]])
    distance, same = torch.tensor([[0, 1], [6, 5000]]), torch.tensor([[0, 1], [1, 0]])
    scores = network.score_pairs(vectors[1:], vectors, index, distance, same, 0.0)
    buckets = [[0, 1], [2, 9]]  # 0, 1 to 2, 3 to 6, ..., 511 and more
    layer = torch.cat([network.pair_mention.weight, network.pair_antecedent.weight, network.pair_product.weight], dim=1)
    for row in range(2):
        for column in range(2):
            one, two = vectors[1 + row], vectors[index[row, column]]
            hidden = layer @ torch.cat([one, two, one * two]) + network.pair_mention.bias
            hidden = hidden + network.pair_distance.weight[buckets[row][column]]
            hidden = hidden + network.pair_same.weight[same[row, column]]
            torch.testing.assert_close(scores[row, column], network.pair_score(hidden.relu())[0])


# parts of a doc, its spans, and which of them are kept

VOCAB = spacy.blank("xx").vocab


def doc_of(lengths: list[int]) -> Doc:
    starts: list[bool | int | None] = [not place for length in lengths for place in range(length)]
    return Doc(VOCAB, words=["a"] * sum(lengths), sent_starts=starts)


def part_of(lengths: list[int], space: tuple[int, ...] = ()) -> Part:
    tokens = sum(lengths)
    return Part(0, tokens, lengths, np.zeros(tokens, dtype=int), np.isin(np.arange(tokens), space).astype(int))


def test_parts_are_whole_sentences() -> None:
    parts = list(split_into_parts(doc_of([3, 4, 2, 9, 1]), 8))
    assert [(part.start, part.lengths, part.end) for part in parts] == [
        (0, [3, 4], 7),
        (7, [2], 9),
        (9, [9], 18),
        (18, [1], 19),
    ]
    assert [len(part.lower) for part in parts] == [7, 2, 9, 1]


def test_long_sentences_are_cut() -> None:
    (part,) = split_into_parts(doc_of([260, 3]), 1000)
    assert part.lengths == [250, 10, 3]
    (part,) = split_into_parts(Doc(VOCAB, words=["a"] * 501), 1000)
    assert part.lengths == [250, 250, 1]
    assert list(split_into_parts(Doc(VOCAB), 8)) == []


def test_spans() -> None:
    found = {(start, start + width + 1) for width, start in spans_of(part_of([3, 2]), 2).tolist()}
    assert found == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 2), (1, 3), (3, 5)}
    found = {(start, start + width + 1) for width, start in spans_of(part_of([4], (1,)), 9).tolist()}
    assert found == {(0, 1), (2, 3), (3, 4), (0, 3), (2, 4), (0, 4)}


def test_spans_that_cross_a_better_one_are_not_kept() -> None:
    spans = np.array([[0, 2], [1, 3], [0, 4], [1, 2], [3, 5]])
    scores = np.array([0.5, 0.9, 0.4, 0.1, 0.3])
    assert best_spans(spans, scores, 5).tolist() == [2, 3, 1]  # [0, 4], [1, 2], [1, 3]
    assert best_spans(spans, scores, 2).tolist() == [2, 1]
    assert best_spans(spans, scores, 0).tolist() == []


# links cross parts, which change nothing but what is kept, and memory does not grow with the doc

WORDS = " ".join(text for text, _ in TEXTS).split()


@pytest.fixture(scope="module")
def learned() -> Language:
    return trained()


def scores_of(nlp: Language, doc: Doc, part_tokens: int) -> Any:
    pipe = nlp.get_pipe("coreference")
    before = pipe.model.attrs["part_tokens"]
    pipe.model.attrs["part_tokens"] = part_tokens
    try:
        return pipe.model.predict([nlp.get_pipe("sentencizer")(doc)])[0]
    finally:
        pipe.model.attrs["part_tokens"] = before


def test_parts_give_the_same_links_as_the_whole(learned: Language) -> None:
    """But for the share of spans that is kept, which is one of each part: here it is more than there are mentions."""
    words = WORDS * 5
    whole, parts = (scores_of(learned, Doc(learned.vocab, words=words), size) for size in (1000, 13))
    assert len(whole.spans) > 40
    assert parts.spans.tolist() == whole.spans.tolist()
    assert parts.antecedents.tolist() == whole.antecedents.tolist()
    assert (whole.antecedents[30:] >= 0).all()
    np.testing.assert_allclose(parts.pair_scores, whole.pair_scores, rtol=1e-4, atol=1e-4)


def test_a_cluster_spans_parts(learned: Language) -> None:
    doc = Doc(learned.vocab, words=TEXTS[0][0].split())
    scores = scores_of(learned, doc, 6)  # the first sentence is a part, and the others are the second one
    link = scores.spans.tolist().index([6, 7])
    assert scores.pair_scores[link, 0] > 0
    assert scores.spans[scores.antecedents[link, 0]].tolist() == [0, 1]


@pytest.mark.slow
def test_a_novel(learned: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    """30,000 tokens: what the network sees at once is no more than for a doc of a few parts."""
    seen: list[tuple[int, int]] = []
    network: Any = learned.get_pipe("coreference").model.shims[0].network  # type: ignore[attr-defined]
    read, score_pairs = network.read, network.score_pairs

    def reading(vectors: Any, *others: Any) -> Any:
        seen.append((len(vectors), 0))
        return read(vectors, *others)

    def scoring(mentions: Any, antecedents: Any, *others: Any) -> Any:
        seen.append((0, len(antecedents)))
        return score_pairs(mentions, antecedents, *others)

    monkeypatch.setattr(network, "read", reading)
    monkeypatch.setattr(network, "score_pairs", scoring)
    doc = Doc(learned.vocab, words=(WORDS * (30_000 // len(WORDS) + 1))[:30_000])
    learned(doc)
    clusters = bounds(clusters_of(doc))
    assert max(tokens for tokens, _ in seen) <= 2000
    assert max(compared for _, compared in seen) <= 0.5 * 2000 + 20
    assert len(seen) >= 30
    borders = [part.end for part in split_into_parts(doc, 2000)][:-1]
    assert any(cluster[0][0] < border <= cluster[-1][0] for cluster in clusters for border in borders)
    assert len({mention for cluster in clusters for mention in cluster}) == sum(map(len, clusters)) > 2_500
