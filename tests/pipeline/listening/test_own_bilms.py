"""A copy of the biLM for each component, by a callback of the config."""

import numpy as np
import pytest
import spacy
from tasks import tok2vec, train, with_tasks

from spacy_elmo.pipeline.callbacks import build_replace_listeners


@pytest.mark.slow
def test_components_run_alone_and_say_the_same() -> None:
    nlp = with_tasks("tagger", "ner", block=tok2vec(output=True))
    train(nlp, 3)
    doc = nlp("Paris likes green ham")
    assert build_replace_listeners()(nlp) is nlp
    assert nlp.get_pipe("elmo").listening_components == []
    alone = nlp.make_doc("Paris likes green ham")
    for name in ("tagger", "ner"):
        nlp.get_pipe(name)(alone)  # without elmo
    assert [token.tag_ for token in alone] == [token.tag_ for token in doc]
    scores = [nlp.get_pipe("tagger").model.predict([other])[0] for other in (alone, doc)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-5)


def test_without_listeners_nothing_happens() -> None:
    nlp = with_tasks()
    nlp.add_pipe("tagger")
    assert build_replace_listeners()(nlp).pipe_names == ["elmo", "tagger"]
    assert build_replace_listeners()(spacy.blank("en")).pipe_names == []
