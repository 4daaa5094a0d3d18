"""Clusters on docs: span groups, attributes, and what is refused."""

from typing import Any

import pytest
import spacy
from coreference_cases import bounds
from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.coreference.annotations import annotate, clusters_of, register

VOCAB = spacy.blank("en").vocab


@pytest.fixture
def doc() -> Doc:
    register("coref_clusters")
    return Doc(VOCAB, words=["Anna", "saw", "Bert", "and", "his", "dog", ".", "She", "waved"])


def test_groups_and_attributes(doc: Doc) -> None:
    clusters = [[(0, 1), (7, 8)], [(2, 3), (4, 5)], [(4, 6)]]
    annotate(doc, clusters)
    assert list(doc.spans) == ["coref_clusters_1", "coref_clusters_2", "coref_clusters_3"]
    assert bounds(doc._.coref_clusters) == clusters
    assert doc[7:8]._.coref_head.text == "Anna"
    assert doc[4:5]._.coref_head.text == "Bert"
    assert doc[4:6]._.coref_head.text == "his dog"
    assert doc[1:2]._.coref_head is None
    read = next(DocBin().from_bytes(DocBin(docs=[doc]).to_bytes()).get_docs(VOCAB))
    assert bounds(clusters_of(read)) == clusters


def test_clusters_in_the_order_of_their_numbers(doc: Doc) -> None:
    annotate(doc, [[(place, place + 1)] for place in range(8)])
    doc.spans["coref_clusters_10"] = [doc[0:2], doc[0:2]]  # a mention that is given twice is one
    doc.spans["coref_clusters_9"] = []
    assert bounds(clusters_of(doc)) == [[(place, place + 1)] for place in range(8)] + [[(0, 2)]]


def test_new_clusters_replace_old_ones(doc: Doc) -> None:
    doc.spans["others"] = [doc[0:3]]
    annotate(doc, [[(0, 1)], [(2, 3)]])
    annotate(doc, [[(4, 5)]])
    assert bounds(clusters_of(doc)) == [[(4, 5)]]
    assert "others" in doc.spans


def test_another_prefix(doc: Doc) -> None:
    register("people")
    annotate(doc, [[(0, 1)]], "people")
    annotate(doc, [[(2, 3), (4, 5)]])
    assert bounds(doc._.people) == [[(0, 1)]]
    assert bounds(doc._.coref_clusters) == [[(2, 3), (4, 5)]]
    assert (doc[0:1]._.people_head, doc[0:1]._.coref_head) == (doc[0:1], None)
    assert (doc[4:5]._.people_head, doc[4:5]._.coref_head) == (None, doc[2:3])


def test_a_mention_in_two_clusters(doc: Doc) -> None:
    doc.spans["coref_clusters_1"], doc.spans["coref_clusters_2"] = [doc[0:1], doc[2:3]], [doc[2:3]]
    with pytest.raises(AnnotationError, match="'Bert' is in two clusters, coref_clusters_1 and coref_clusters_2"):
        clusters_of(doc)


def test_a_group_without_a_number(doc: Doc) -> None:
    doc.spans["coref_clusters_anna"] = [doc[0:1]]
    with pytest.raises(AnnotationError, match="coref_clusters_anna has no number"):
        clusters_of(doc)


def test_spans_as_mentions(doc: Doc) -> None:
    annotate(doc, [[doc[0:1], (7, 8)], [[2, 3], doc[4:5]]])
    assert bounds(clusters_of(doc)) == [[(0, 1), (7, 8)], [(2, 3), (4, 5)]]
    annotate(doc, clusters_of(doc)[1:])  # spans of the groups that are replaced
    assert bounds(clusters_of(doc)) == [[(2, 3), (4, 5)]]


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ([[(0, 99)]], r"mention \(0, 99\), but the doc has 9 tokens"),
        ([[(3, 2)]], r"mention \(3, 2\), but the doc has 9 tokens"),
        ([[(2, 2)]], r"mention \(2, 2\), but the doc has 9 tokens"),
        ([[(-1, 2)]], r"mention \(-1, 2\), but the doc has 9 tokens"),
        ([[(0, 1)], [(2, 3), (0, 1)]], "'Anna' is in two clusters, coref_clusters_1 and coref_clusters_2"),
        ([[(0, 1, "PER")]], r"mention \(0, 1, 'PER'\). Expected a span"),
        ([(0, 1), (6, 7)], "cluster 1 has the mention 0. Expected a span"),
        ([[(0, 1)], [(0.0, 2)]], r"cluster 2 has the mention \(0.0, 2\). Expected a span"),
        ([["ab"]], "cluster 1 has the mention 'ab'. Expected a span"),
        ([0, 1], "cluster 1 is 0. Expected a list of mentions"),
        (None, "the clusters are None. Expected a list of clusters"),
        ([[Doc(VOCAB, words=["Anna"])[:]]], "mention 'Anna', which is a span of another doc"),
    ],
)
def test_wrong_clusters_change_nothing(doc: Doc, clusters: Any, message: str) -> None:
    annotate(doc, [[(4, 5)]])
    with pytest.raises(AnnotationError, match=message):
        annotate(doc, clusters)
    assert bounds(clusters_of(doc)) == [[(4, 5)]]
