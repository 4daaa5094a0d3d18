"""What a probe is compared to: the most frequent label of each word, without its sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def majority_labels(training: Iterable[tuple[str, str]], words: Sequence[str]) -> list[str]:
    """Return for each word its most frequent label in the training part; for others the most frequent label of all.

    Of equally frequent labels, the one that comes first in the training part is used.

    training: words and their labels, one or more.
    words: to label.
    """
    all_labels: Counter[str] = Counter()
    of_words: dict[str, Counter[str]] = {}
    for word, label in training:
        all_labels[label] += 1
        of_words.setdefault(word, Counter())[label] += 1
    return [of_words.get(word, all_labels).most_common(1)[0][0] for word in words]
