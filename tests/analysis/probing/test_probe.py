"""Probes of a biLM whose layers know different things."""

from collections.abc import Sequence

import pytest
from fake_bilm import fake_bilm

from spacy_elmo.analysis.probing import LabelledCorpus, Probes, Score, embed
from spacy_elmo.errors import CorpusError


def vector(layer: int, words: Sequence[str], place: int) -> Sequence[float]:
    """Layer 0 knows the word, layer 1 whether it is the first one."""
    return [words[place] == "x", words[place] == "y"] if layer == 0 else [place == 0, place != 0]


BILM = fake_bilm(2, 2, vector)
TRAIN = LabelledCorpus([["x", "y"], ["y", "x"], ["x", "x", "y"]], ["F", "N", "F", "N", "F", "", "N"])
DEV = LabelledCorpus([["y", "x", "x", "y"]], ["F", "N", "", "Z"])


def test_embed() -> None:
    told: list[int] = []
    layers = embed(BILM, TRAIN.sentences, told.append)
    assert layers[0].tolist() == [[1, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0], [0, 1]]
    assert layers[1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]]
    assert sorted(told) == [2, 2, 3]


def test_probes() -> None:
    """Of three labelled tokens one has a label that the training part does not have.

    In the training part x is F twice and N once, y is N twice and F once; in the other part they are the reverse. So
    layer 0 and the baseline are wrong, and layer 1 is right, because the first word is F and the others N.
    """
    probes = Probes(TRAIN, DEV, "dep", 100)
    assert (probes.labels, probes.train_tokens, probes.dev_tokens) == (["F", "N"], 6, 3)
    assert probes.unknown_tokens == 1
    assert probes.majority() == Score(0, None)
    scores = list(probes.run(BILM, lambda tokens: None))
    assert scores[:2] == [Score(0, None), Score(2 / 3, None)]
    assert len(scores) == 3


def test_entities_have_f1() -> None:
    train = LabelledCorpus(TRAIN.sentences, ["B-X", "O", "B-X", "O", "B-X", "O", "O"])
    dev = LabelledCorpus([["y", "x", "x"]], ["B-X", "B-X", "O"])
    scores = list(Probes(train, dev, "ent", 100).run(BILM, lambda tokens: None))
    assert scores[1].accuracy == pytest.approx(2 / 3)
    assert scores[1].f1 == pytest.approx(2 / 3)  # all that is found is right, half of it is found


def test_one_label() -> None:
    corpus = LabelledCorpus([["a", "b"]], ["X", ""])
    with pytest.raises(CorpusError, match="the same value of the attribute 'tag': 'X'"):
        Probes(corpus, corpus, "tag", 100)


def test_no_label_in_common() -> None:
    dev = LabelledCorpus([["x", "y"]], ["Z", ""])
    with pytest.raises(CorpusError, match=r"it has \['Z'\], and the training part has \['F', 'N'\]"):
        Probes(TRAIN, dev, "dep", 100)


def test_a_corpus_whose_words_all_have_labels() -> None:
    full = LabelledCorpus(TRAIN.sentences, ["F", "N", "F", "N", "F", "N", "N"])
    assert list(Probes(full, full, "dep", 100).run(BILM, lambda tokens: None))[1] == Score(1.0, None)


def test_the_mean_of_the_layers_knows_what_no_layer_knows() -> None:
    """Only an x that comes first has the label "yes".

    Each layer alone sees "no" more often, whether the word is x or not, and whether it is the first one or not. So in
    the other part, where each case occurs once, a layer is wrong in one of four, and the mean of both in none.
    """
    sentences = [["x", "x", "y"], ["x", "x"], ["y", "x"], ["y", "y"], ["y", "y"]]
    train = LabelledCorpus(sentences, ["yes", "no", "no", "yes", *["no"] * 7])
    dev = LabelledCorpus([["x", "y"], ["y", "x"]], ["yes", "no", "no", "no"])
    probes = Probes(train, dev, "dep", 100)
    assert probes.labels == ["yes", "no"]
    told: list[int] = []
    assert list(probes.run(BILM, told.append)) == [Score(3 / 4, None), Score(3 / 4, None), Score(1, None)]
    assert sum(told) == 11 + 4


def test_without_iterations_the_first_label_is_predicted() -> None:
    """All weights are then zero, and of equal scores that of the first label counts."""
    corpus = LabelledCorpus([["x", "y"], ["y", "x"]], ["yes", "no", "yes", "no"])
    assert list(Probes(corpus, corpus, "dep", 0).run(BILM, lambda tokens: None)) == [Score(1 / 2, None)] * 3
