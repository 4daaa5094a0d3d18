"""Scores and the baseline, by hand."""

from spacy_elmo.analysis.probing import Score, majority_labels, score


def test_accuracy() -> None:
    assert score(["A", "B", "A", "C"], ["A", "B", "B", "A"], None) == Score(0.5, None)


def test_f1_without_the_label_outside() -> None:
    # three are found, two are present, and one is right: precision 1/3, recall 1/2
    predicted, labels = ["B-X", "I-X", "B-Y", "O", "O"], ["B-X", "B-X", "O", "O", "O"]
    assert score(predicted, labels, "O") == Score(3 / 5, 0.4)
    assert score(["O", "O"], ["O", "O"], "O") == Score(1.0, 0.0)


def test_majority() -> None:
    training = [("can", "V"), ("can", "N"), ("can", "V"), ("a", "D"), ("run", "N"), ("run", "V"), ("the", "D")]
    # of run's two labels N came first; for an unknown word V is the most frequent of all (three of seven)
    assert majority_labels(training, ["can", "run", "the", "Can"]) == ["V", "N", "D", "V"]
