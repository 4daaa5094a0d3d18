"""Probes of a biLM whose layers know different things."""

from collections.abc import Sequence

import pytest
from fake_bilm import fake_bilm

from spacy_elmo.analysis.probing.corpus import LabelledCorpus
from spacy_elmo.analysis.probing.probe import Probes, embed
from spacy_elmo.analysis.probing.scores import Score
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


def test_a_corpus_whose_words_all_have_labels() -> None:
    full = LabelledCorpus(TRAIN.sentences, ["F", "N", "F", "N", "F", "N", "N"])
    assert list(Probes(full, full, "dep", 100).run(BILM, lambda tokens: None))[1] == Score(1.0, None)
