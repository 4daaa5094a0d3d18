"""The best legal tags, against all sequences tried one by one."""

from itertools import product

import numpy as np
import pytest

from spacy_elmo.tasks.roles.component import best_tags

LABELS = 2  # tags: O, B-0, B-1, I-0, I-1


def is_legal(tags: tuple[int, ...]) -> bool:
    return all(tag <= LABELS or before in (tag, tag - LABELS) for before, tag in zip((0, *tags), tags))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_best_of_all_legal_sequences(seed: int, length: int) -> None:
    scores = np.random.default_rng(seed).standard_normal((length, 1 + 2 * LABELS)).astype("f")
    scores[:, 1 + LABELS :] += 1  # so that the best tag of each token alone is often illegal
    legal = [tags for tags in product(range(1 + 2 * LABELS), repeat=length) if is_legal(tags)]
    expected = max(legal, key=lambda tags: sum(scores[place, tag] for place, tag in enumerate(tags)))
    assert tuple(best_tags(scores)) == expected


def test_no_tokens() -> None:
    assert best_tags(np.zeros((0, 5), dtype="f")).shape == (0,)
