"""Losses and perplexities against a biLM in float64 numpy with a softmax written out, and against worked cases."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import Datasets, bilm_of, random_datasets
from numpy_bilm import NumpyBiLM, State

from spacy_elmo.errors import CorpusError, WeightsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining import scoring
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.scoring import (
    Score,
    evaluate_text,
    score_rows,
    score_sentences,
    score_text,
    score_unigram,
    spooled,
    total,
)
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary

OPTIONS = BiLMOptions(3, ((1, 3), (3, 4)), 1, "relu", 12, 6, 4, 2, 0.8, 0.6, True)
WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "mat", "naïve", "東京"]
TEXT = [
    ["the", "cat", "sat", "on", "the", "mat"],
    ["cat"],
    ["unheard"],
    ["the", "the", "the", "the"],
    ["naïve", "東京", "dogs", "and", "a_word_longer_than_the_limit"],
    ["<S>", "sat", "</S>", "<UNK>"],  # words of the text, not boundaries: unknown
    ["cat"],
    [*(["the", "mat", "on", "another", "cat", "sat"] * 9), "end"],
    ["the", "cat", "sat", "on", "the", "mat"],
]
KINDS = [
    OPTIONS,
    replace(OPTIONS, use_skip_connections=False, n_layers=3, activation="tanh"),
    replace(OPTIONS, dim=4, cell_clip=None, proj_clip=None, n_highway=0),
]


def softmax_of(weight: np.ndarray, bias: np.ndarray) -> Softmax:
    made = Softmax(*weight.shape)
    made.load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})
    return made


class Case:
    """One model twice: the package's, in float64, and the numpy one with its softmax."""

    def __init__(self, options: BiLMOptions) -> None:
        datasets: Datasets = random_datasets(options, seed=5)
        rng = np.random.default_rng(6)
        self.weight = rng.standard_normal((len(WORDS), options.projection_dim)).astype(np.float32)
        self.bias = rng.standard_normal(len(WORDS)).astype(np.float32)
        self.single = LanguageModel(bilm_of(options, datasets), softmax_of(self.weight, self.bias), Vocabulary(WORDS))
        double = softmax_of(self.weight, self.bias).double()
        self.model = LanguageModel(bilm_of(options, datasets).double(), double, Vocabulary(WORDS))
        self.reference = NumpyBiLM(options, datasets)

    def losses(self, sentence: list[str], state: State | None = None) -> tuple[list[list[tuple[str, float]]], State]:
        """Per direction the words predicted and their -log p; and the state before the far boundary is read."""
        result = self.reference.run(sentence, state)
        skip = self.reference.options.use_skip_connections
        tops = result.hidden.sum(0) if skip else result.hidden[-1]  # skips add up the layers below
        known = {word: number for number, word in enumerate(WORDS) if number > 2}
        both = []
        for direction, words, boundary in ((0, sentence, 1), (1, sentence[::-1], 0)):
            targets = [*((word, known.get(word, 2)) for word in words), ("", boundary)]
            items = []
            for top, (_, target) in zip(tops[direction], targets):
                logits = self.weight.astype(np.float64) @ top + self.bias
                items.append((WORDS[target], math.log(sum(math.exp(logit) for logit in logits)) - logits[target]))
            both.append(items)
        # the last symbol is predicted and not read: the state before it goes on
        return both, State(result.hidden[:, :, -2], result.cells[:, :, -2])


@pytest.fixture(scope="module", params=KINDS, ids=["skips", "tanh", "square"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def perplexity(losses: list[float]) -> float:
    return math.exp(sum(losses) / len(losses))


def check_text(score: Score, losses: list[list[tuple[str, float]]]) -> None:
    """Compare a text's score with all its losses, forward and backward."""
    forward, backward = ([loss for _, loss in items] for items in losses)
    assert score.predictions == len(forward) == len(backward)
    expected = (perplexity(forward), perplexity(backward), perplexity(forward + backward))
    assert score.perplexities == pytest.approx(expected, rel=1e-9)
    forward, backward = ([loss for word, loss in items if word != "<UNK>"] for items in losses)
    expected = (perplexity(forward), perplexity(backward), perplexity(forward + backward))
    assert score.known_perplexities == pytest.approx(expected, rel=1e-9)
    assert score.unknown == score.predictions - len(forward)


def test_each_sentence_and_the_text_from_the_zero_state(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "BATCH_TOKENS", 16)
    monkeypatch.setattr(scoring, "BLOCK_SENTENCES", 4)
    scores = list(score_sentences(case.model, TEXT))
    assert len(scores) == len(TEXT)
    everything: list[list[tuple[str, float]]] = [[], []]
    for sentence, score in zip(TEXT, scores):
        losses, _ = case.losses(sentence)
        assert (score.sentences, score.tokens) == (1, len(sentence))
        assert score.unknown == sum(word not in WORDS[3:] for word in sentence)
        assert score.loss == pytest.approx([sum(loss for _, loss in items) for items in losses], rel=1e-9)
        for direction in (0, 1):
            everything[direction] += losses[direction]
    check_text(total(scores), everything)
    check_text(score_text(case.model, TEXT), everything)


@pytest.mark.slow
@pytest.mark.parametrize(("streams", "starts"), [(1, [0]), (3, [0, 3, 6]), (4, [0, 2, 4, 6]), (100, list(range(9)))])
def test_the_text_with_the_state_carried(
    case: Case, streams: int, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything: list[list[tuple[str, float]]] = [[], []]
    state = None
    for number, sentence in enumerate(TEXT):
        losses, state = case.losses(sentence, None if number in starts else state)
        for direction in (0, 1):
            everything[direction] += losses[direction]
    got = evaluate_text(case.model, iter(TEXT), streams)
    check_text(got.carried, everything)
    monkeypatch.setattr(scoring, "BATCH_TOKENS", 50)
    got = evaluate_text(case.model, iter(TEXT), streams)
    assert got.streams == len(starts)
    check_text(got.carried, everything)


def test_float32_is_near(case: Case) -> None:
    single, double = score_text(case.single, TEXT), score_text(case.model, TEXT)
    assert single.perplexities == pytest.approx(double.perplexities, rel=1e-5)


def test_a_softmax_of_biases_and_a_unigram_model_by_hand() -> None:
    words = ["<S>", "</S>", "<UNK>", "a"]
    log_p = np.log([1 / 8, 1 / 4, 1 / 8, 1 / 2])
    model = LanguageModel(Case(OPTIONS).model.bilm, softmax_of(np.zeros((4, 4)), log_p).double(), Vocabulary(words))
    text = [["a", "a"], ["z"]]
    # bits of a a </S> <UNK> </S>: 1 1 2 3 2; of a a <S> <UNK> <S>: 1 1 3 3 3
    for score in (score_text(model, text), score_unigram(model, text, log_p)):
        assert (score.sentences, score.tokens, score.unknown, score.predictions) == (2, 3, 1, 5)
        assert score.perplexities == pytest.approx((2 ** (9 / 5), 2 ** (11 / 5), 2 ** (10 / 5)), rel=1e-6)
        assert score.known_perplexities == pytest.approx((2 ** (6 / 4), 2 ** (8 / 4), 2 ** (7 / 4)), rel=1e-6)


def test_no_more_than_a_block_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Case(OPTIONS).single
    read = 0

    def endless() -> Iterator[list[str]]:
        nonlocal read
        while True:
            read += 1
            yield ["the", "cat"]

    monkeypatch.setattr(scoring, "BLOCK_SENTENCES", 5)
    scores = score_sentences(model, endless())
    for number in range(12):
        next(scores)
        assert read == 5 * (number // 5 + 1)
    read = 0
    monkeypatch.setattr(scoring, "BLOCK_TOKENS", 6)
    scores = score_sentences(model, endless())
    next(scores)
    assert read == 3


def test_what_can_not_be_scored() -> None:
    model = Case(OPTIONS).single
    with pytest.raises(CorpusError, match="no sentence to score"):
        score_text(model, [])
    with pytest.raises(CorpusError, match="no sentence to score"):
        score_unigram(model, [], np.zeros(10))
    with pytest.raises(CorpusError, match="no sentence to score"):
        evaluate_text(model, [])
    bias = np.array([3e38] + [-3e38] * 9, np.float32)  # its range is beyond float32
    large = softmax_of(np.zeros((10, 4), np.float32), bias)
    with pytest.raises(WeightsError, match="loss of a sentence is not finite"):
        score_text(LanguageModel(model.bilm, large, Vocabulary(WORDS)), TEXT)
    score = Score(1, 1, 1, (2e6, 2.0), (1e6, 1.0))  # beyond exp
    assert score.perplexities == score.known_perplexities == (math.inf, pytest.approx(math.e), math.inf)


def test_an_evaluation_is_the_scores_by_themselves() -> None:
    """The sums may be made by somebody else, who gets the score of each sentence."""
    counts = np.arange(3, 3 + len(WORDS), dtype=np.int64)
    case = Case(OPTIONS)
    model = LanguageModel(case.model.bilm, case.model.softmax, Vocabulary(WORDS, counts))
    log_p = model.vocabulary.log_unigram()
    assert log_p is not None
    seen: list[Score] = []

    def sum_up(scores: Iterable[Score]) -> Score:
        seen.extend(scores)
        return total(seen)

    got = evaluate_text(model, iter(TEXT), 100, sum_up)
    assert seen == list(score_sentences(model, TEXT))
    counts: list[int] = []
    assert score_text(model, TEXT, tell=counts.append) == got.zero
    assert sum(counts) == len(TEXT)
    assert got.zero == score_text(model, TEXT)
    assert got.carried == total(score_rows(model, [[sentence] for sentence in TEXT]))
    assert (got.streams, got.unigram) == (len(TEXT), score_unigram(model, TEXT, log_p))
    assert evaluate_text(case.model, TEXT).unigram is None


# The copy of the text


def test_a_text_that_fails_leaves_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[list[str]]:
        yield ["a"]
        raise CorpusError("damaged")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CorpusError, match="damaged"):
        spooled(broken())
    assert list(spooled(iter(TEXT))) == TEXT
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tempdir", ["/here", None])
def test_a_copy_that_can_not_be_written(monkeypatch: pytest.MonkeyPatch, tempdir: str | None) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    monkeypatch.setattr(tempfile, "tempdir", tempdir)
    monkeypatch.setenv("TMPDIR", "/here")
    with pytest.raises(CorpusError, match=r"^/here: .*can't be written .*No space left.*TMPDIR"):
        spooled([["a"]])
