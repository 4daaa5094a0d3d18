"""Clusters from the scores of mentions."""

import numpy as np
import pytest

from spacy_elmo.tasks.coreference.component import clusters_from
from spacy_elmo.tasks.coreference.model import Scores


@pytest.mark.parametrize("singletons", [True, False])
def test_a_mention_joins_the_cluster_of_an_antecedent_above_zero(singletons: bool) -> None:
    """The second score is 0, so its mention begins a cluster; the fifth joins the fourth's, which is the first's."""
    spans = np.array([[0, 1], [2, 3], [4, 6], [7, 8], [9, 10]])
    antecedents, pair_scores = np.array([[0], [0], [1], [0], [3]]), np.array([[-1.0], [0.0], [-0.5], [1e-6], [2.0]])
    scores = Scores(spans, np.ones(5), np.arange(5), antecedents, pair_scores)
    first, alone = [(0, 1), (7, 8), (9, 10)], [[(2, 3)], [(4, 6)]]
    assert clusters_from(scores, singletons=singletons) == [first, *(alone if singletons else [])]
