"""MUC, B-cubed, CEAF-phi4 and LEA against other scorers and the papers.

golden/coreference_scores.json has random clusterings with what scorch 0.2.0 (MUC, B-cubed, CEAF-phi4) and
coreference-eval 0.0.2 (LEA without clusters of one mention) make of them: recall, precision, F1.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import srsly

from spacy_elmo.tasks.coreference.scorer import Clusters, Counts, b_cubed, ceaf, lea, mentions, muc

CASES = srsly.read_json(Path(__file__).parents[2] / "golden" / "coreference_scores.json")
METRICS = {"muc": muc, "b3": b_cubed, "ceaf": ceaf}


def clusters(*texts: str) -> Clusters:
    return [frozenset(text) for text in texts]


def scores(counts: Counts) -> list[float]:
    return [counts.recall, counts.precision, counts.f1]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_as_other_scorers(case: dict[str, list[list[int]]]) -> None:
    key, response = ([frozenset(cluster) for cluster in case[side]] for side in ("key", "response"))
    for name, metric in METRICS.items():
        assert scores(metric(key, response)) == pytest.approx(case[name])
    several = [[cluster for cluster in side if len(cluster) > 1] for side in (key, response)]
    assert scores(lea(*several)) == pytest.approx(case["lea_without_singletons"])


def test_the_example_of_bagga_and_baldwin() -> None:
    """1998, "Algorithms for Scoring Coreference Chains", figures 1 to 4: two links of the same kind of error."""
    key = clusters("12345", "67", "89ABC")
    first, second = clusters("12345", "6789ABC"), clusters("1234589ABC", "67")
    for response, precision in ((first, 16 / 21), (second, 7 / 12)):
        assert scores(muc(key, response))[:2] == pytest.approx([1.0, 9 / 10])
        assert scores(b_cubed(key, response))[:2] == pytest.approx([1.0, precision])


def test_the_example_of_moosavi_and_strube() -> None:
    """2016, "Which Coreference Evaluation Metric Do You Trust?", section 4: recall 0.24, precision 0.33, F1 0.28."""
    counts = lea(clusters("abc", "defg"), clusters("ab", "cd", "fghi"))
    assert scores(counts) == pytest.approx([(3 * 1 / 3 + 4 * 1 / 6) / 7, (2 + 0 + 4 * 1 / 6) / 8, 0.28], abs=5e-3)
    assert counts.recall == pytest.approx(5 / 21)


@pytest.mark.parametrize(
    ("metric", "key", "response", "expected"),
    [
        (lea, ("a", "bc"), ("a", "bc"), [1.0, 1.0, 1.0]),  # a single mention has a link to itself
        (lea, ("a", "bc"), ("ab", "c"), [0.0, 0.0, 0.0]),
        (lea, ("a", "bc"), ("a",), [1 / 3, 1.0, 0.5]),
        (muc, ("a", "b"), ("a", "b"), [0.0, 0.0, 0.0]),  # it has no links to count
        (b_cubed, ("a", "bc"), ("a", "b", "c"), [2 / 3, 1.0, 0.8]),
        (ceaf, ("a", "bc"), ("a", "b", "c"), [(1 + 2 / 3) / 2, (1 + 2 / 3) / 3, 2 / 3]),
        (mentions, ("ab", "c"), ("acd",), [2 / 3, 2 / 3, 2 / 3]),
    ],
)
def test_cases_by_hand(
    metric: Callable[[Clusters, Clusters], Counts],
    key: tuple[str, ...],
    response: tuple[str, ...],
    expected: list[float],
) -> None:
    assert scores(metric(clusters(*key), clusters(*response))) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [muc, b_cubed, ceaf, lea, mentions])
def test_nothing_on_one_side(metric: Callable[[Clusters, Clusters], Counts]) -> None:
    for key, response in (((), ()), (("ab",), ()), ((), ("ab",))):
        assert scores(metric(clusters(*key), clusters(*response))) == [0.0, 0.0, 0.0]


def test_docs_are_added_up() -> None:
    one, two = muc(clusters("abc"), clusters("ab")), muc(clusters("ab"), clusters("ab"))
    assert scores(one.plus(two)) == pytest.approx([2 / 3, 1.0, 0.8])
