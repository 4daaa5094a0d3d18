"""MUC, B-cubed, CEAF-phi4 and LEA against other scorers and figures worked out by hand; what is compared.

golden/coreference_scores.json has random clusterings with what scorch 0.2.0 (MUC, B-cubed, CEAF-phi4) and
coreference-eval 0.0.2 (LEA without clusters of one mention) make of them: recall, precision, F1.
"""

from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.tasks.coreference import annotate
from spacy_elmo.tasks.coreference.scorer import build_coreference_scorer

VOCAB = spacy.blank("xx").vocab
CASES = srsly.read_json(Path(__file__).parents[1] / "golden" / "coreference_scores.json")
LETTERS = "123456789ABCabcdefghi"


def numbered(key: list[list[int]], response: list[list[int]]) -> Example:
    """An example whose mentions are single tokens."""
    most = max([mention for cluster in (*key, *response) for mention in cluster], default=0)
    docs = [Doc(VOCAB, words=["w"] * (most + 1)) for _ in range(2)]
    for doc, clusters in zip(docs, (response, key)):
        annotate(doc, [[(mention, mention + 1) for mention in cluster] for cluster in clusters])
    return Example(*docs)


def lettered(key: tuple[str, ...], response: tuple[str, ...]) -> Example:
    return numbered(*([[LETTERS.index(letter) for letter in text] for text in side] for side in (key, response)))


def scores(name: str, *examples: Example, singletons: bool = True) -> list[Any]:
    """Recall, precision and F1."""
    found = build_coreference_scorer(singletons=singletons)(examples)
    return [found[f"coref_{name}_{letter}"] for letter in "rpf"]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_as_other_scorers(case: dict[str, list[list[int]]]) -> None:
    example = numbered(case["key"], case["response"])
    for name in ("muc", "b3", "ceaf"):
        assert scores(name, example) == pytest.approx(case[name])
    scored = any(len(cluster) > 1 for cluster in case["key"])
    lea = case["lea_without_singletons"] if scored else [None] * 3
    assert scores("lea", example, singletons=False) == pytest.approx(lea)


@pytest.mark.parametrize(
    ("name", "key", "response", "expected"),
    [
        ("lea", ("a", "bc"), ("a", "bc"), [1.0, 1.0, 1.0]),  # a single mention has a link to itself
        ("lea", ("a", "bc"), ("ab", "c"), [0.0, 0.0, 0.0]),
        ("lea", ("a", "bc"), ("a",), [1 / 3, 1.0, 0.5]),
        ("muc", ("a", "b"), ("a", "b"), [0.0, 0.0, 0.0]),  # it has no links to count
        ("b3", ("a", "bc"), ("a", "b", "c"), [2 / 3, 1.0, 0.8]),
        ("ceaf", ("a", "bc"), ("a", "b", "c"), [(1 + 2 / 3) / 2, (1 + 2 / 3) / 3, 2 / 3]),
        ("mentions", ("ab", "c"), ("acd",), [2 / 3, 2 / 3, 2 / 3]),
    ],
)
def test_cases_by_hand(name: str, key: tuple[str, ...], response: tuple[str, ...], expected: list[float]) -> None:
    assert scores(name, lettered(key, response)) == pytest.approx(expected)


def test_docs_are_added_up() -> None:
    examples = lettered(("abc",), ("ab",)), lettered(("ab",), ("ab",))
    assert scores("muc", *examples) == pytest.approx([2 / 3, 1.0, 0.8])


def test_ceaf_of_thousands_of_clusters() -> None:
    clusters = [[number] for number in range(1000)]
    assert scores("ceaf", numbered(clusters, clusters[::-1])) == [1.0, 1.0, 1.0]


WORDS = ["Anna", "saw", "Bert", "and", "he", "saw", "her"]


def example(key: list[Any], response: list[Any]) -> Example:
    predicted, reference = Doc(VOCAB, words=WORDS), Doc(VOCAB, words=WORDS)
    annotate(reference, key)
    annotate(predicted, response)
    return Example(predicted, reference)


KEY = [[(0, 1), (6, 7)], [(2, 3), (4, 5)]]


def test_perfect_and_nothing() -> None:
    found = build_coreference_scorer()([example(KEY, KEY)])
    assert set(found.values()) == {1.0}
    assert set(found) == {"coref_f"} | {
        f"coref_{name}_{letter}" for name in ("muc", "b3", "ceaf", "lea", "mentions") for letter in "prf"
    }
    half = build_coreference_scorer()([example(KEY, KEY[:1])])  # one of two clusters, links and half of the mentions
    assert half["coref_f"] == pytest.approx(2 / 3)
    assert set(build_coreference_scorer()([example(KEY, [])]).values()) == {0.0}
    assert set(build_coreference_scorer()([example([], KEY)]).values()) == {None}


def test_singletons() -> None:
    """With them 3 of 3 clusters are found but for one mention; without them 1 of 1."""
    given = [example([KEY[0], [(2, 3)], [(4, 5)]], [KEY[0], [(2, 3)], [(3, 4)]])]
    for singletons, expected in ((True, [3 / 4, 2 / 3, 1.0]), (False, [1.0, 1.0, 1.0])):
        found = build_coreference_scorer(singletons=singletons)(given)
        assert [found[f"coref_{name}_r"] for name in ("b3", "ceaf", "muc")] == pytest.approx(expected)


def test_docs_with_other_blanks_and_tokens() -> None:
    """The reference has blanks before the full stops, the predicted doc has none."""
    words = ["Anna", "met", "an", "old", "man", ".", "She", "liked", "him", "."]
    clusters = [[(0, 1), (6, 7)], [(2, 5), (8, 9)]]
    reference = Doc(VOCAB, words=words)
    predicted = Doc(VOCAB, words=words, spaces=[word not in ("man", "him") for word in words])
    annotate(reference, clusters)
    annotate(predicted, clusters)
    assert set(build_coreference_scorer()([Example(predicted, reference)]).values()) == {1.0}
    joined = Doc(VOCAB, words=["Anna met", *words[2:]])  # other tokens
    annotate(joined, [[(0, 1), (5, 6)], [(1, 4), (7, 8)]])
    scores = build_coreference_scorer()([Example(joined, reference)])
    assert scores["coref_mentions_p"] == scores["coref_mentions_r"] == 3 / 4
