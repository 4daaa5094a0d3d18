"""A component that has learned three docs by heart."""

import pytest
from coreference_cases import blank, examples
from spacy.language import Language
from spacy.util import fix_random_seed


@pytest.fixture(scope="session")
def trained() -> Language:
    fix_random_seed(0)
    nlp = blank()
    given = examples(nlp)
    optimizer = nlp.initialize(lambda: given)
    optimizer.learn_rate = 0.01
    for _ in range(60):
        nlp.update(given, sgd=optimizer)
    return nlp
