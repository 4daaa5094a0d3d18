"""The default tok2vec, and the width of any."""

import numpy as np
import pytest
import spacy
from spacy.util import registry
from thinc.api import Model

from spacy_elmo.tasks.shared import default_tok2vec, width_of

NLP = spacy.blank("en")


@pytest.mark.parametrize("depth", [1, 4])
def test_the_default_one(depth: int) -> None:
    tok2vec = registry.resolve({"model": default_tok2vec(depth)})["model"]
    docs = [NLP.make_doc("a word")]
    tok2vec.initialize(X=docs)
    assert width_of(tok2vec, docs) == tok2vec.predict(docs)[0].shape[1] == 96


def test_one_that_does_not_say_its_width() -> None:
    silent = Model("silent", lambda model, docs, is_train: ([np.zeros((len(doc), 7), "f") for doc in docs], None))
    assert width_of(silent, [NLP.make_doc("a word")]) == 7
