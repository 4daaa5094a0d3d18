"""Docs in parts: links cross them, they change nothing but what is kept, and memory does not grow with the doc."""

from typing import Any

import numpy as np
import pytest
from coreference_cases import TEXTS, bounds
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.tasks.coreference.annotations import clusters_of
from spacy_elmo.tasks.coreference.model import Scorer, split_into_parts

WORDS = " ".join(text for text, _ in TEXTS).split()


def scores_of(nlp: Language, doc: Doc, part_tokens: int) -> Any:
    pipe = nlp.get_pipe("coreference")
    before = pipe.model.attrs["part_tokens"]
    pipe.model.attrs["part_tokens"] = part_tokens
    try:
        return pipe.model.predict([nlp.get_pipe("sentencizer")(doc)])[0]
    finally:
        pipe.model.attrs["part_tokens"] = before


def test_parts_give_the_same_links_as_the_whole(trained: Language) -> None:
    """But for the share of spans that is kept, which is one of each part: here it is more than there are mentions."""
    words = WORDS * 5
    whole, parts = (scores_of(trained, Doc(trained.vocab, words=words), size) for size in (1000, 13))
    assert len(whole.spans) > 40
    assert parts.spans.tolist() == whole.spans.tolist()
    assert parts.antecedents.tolist() == whole.antecedents.tolist()
    assert (whole.antecedents[30:] >= 0).all()
    np.testing.assert_allclose(parts.pair_scores, whole.pair_scores, rtol=1e-4, atol=1e-4)


def test_a_cluster_spans_parts(trained: Language) -> None:
    doc = Doc(trained.vocab, words=TEXTS[0][0].split())
    scores = scores_of(trained, doc, 6)  # the first sentence is a part, and the others are the second one
    link = scores.spans.tolist().index([6, 7])
    assert scores.pair_scores[link, 0] > 0
    assert scores.spans[scores.antecedents[link, 0]].tolist() == [0, 1]


@pytest.mark.slow
def test_a_novel(trained: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    """120,000 tokens: what the network sees at once is no more than for a doc of a few parts."""
    seen: list[tuple[int, int]] = []
    pairs = Scorer._pairs

    def watched(self: Any, part: Any, words: Any, spans: Any, earlier: Any, texts: Any) -> Any:
        result = pairs(self, part, words, spans, earlier, texts)
        seen.append((len(words.states), len(result[0].bounds)))
        return result

    monkeypatch.setattr(Scorer, "_pairs", watched)
    doc = Doc(trained.vocab, words=(WORDS * (120_000 // len(WORDS) + 1))[:120_000])
    trained(doc)
    clusters = bounds(clusters_of(doc))
    assert max(tokens for tokens, _ in seen) <= 2000
    assert max(compared for _, compared in seen) <= 0.5 * 2000 + 20
    assert len(seen) >= 60
    borders = [part.end for part in split_into_parts(doc, 2000)][:-1]
    assert any(cluster[0][0] < border <= cluster[-1][0] for cluster in clusters for border in borders)
    assert len({mention for cluster in clusters for mention in cluster}) == sum(map(len, clusters)) > 10_000
