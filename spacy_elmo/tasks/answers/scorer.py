"""The registered scorer: exact match and F1 of answers, with SQuAD's normalisation."""

import re
import string
from collections import Counter
from collections.abc import Iterable
from typing import Any

from spacy.training import Example

from ..shared import Scorer
from . import ANSWER, TEXTS, has_answers


def build_answers_scorer() -> Scorer:
    """Build spacy-elmo.answers_scorer.v1."""
    return score_answers


def score_answers(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Return `answers_em` and `answers_f1` (of words) of each doc's best answer, as SQuAD 1.1's script does.

    Each doc counts with the right answer that gives it the best score, and without right answers not at all. Raises
    AnnotationError if a right answer is not in the context.
    """
    matches, overlaps = [], []
    for example in examples:
        group = example.reference.spans.get(ANSWER)
        if group is None or not (right := list(group.attrs.get(TEXTS) or (span.text for span in group))):
            continue
        has_answers(example.reference)  # raises an error for what can't be learned either
        predicted = example.predicted.spans.get(ANSWER, [])
        answer = predicted[0].text if len(predicted) else ""
        matches.append(max(normalise(answer) == normalise(text) for text in right))
        overlaps.append(max(f1(answer, text) for text in right))
    if not matches:
        return {"answers_em": None, "answers_f1": None}
    return {"answers_em": sum(matches) / len(matches), "answers_f1": sum(overlaps) / len(overlaps)}


def normalise(text: str) -> str:
    """Return a text in lower case, without punctuation and articles, with single blanks between words."""
    without = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", without).split())


def f1(answer: str, right: str) -> float:
    """Return the F1 of an answer's words after normalisation, each counted as often as it occurs."""
    words, expected = normalise(answer).split(), normalise(right).split()
    shared = (Counter(words) & Counter(expected)).total()
    return 2 * shared / (len(words) + len(expected)) if shared else 0.0
