"""ElmoTok2Vec without ELMo at its input: [h; ELMo], where h is the encoder's output for x alone."""

from typing import Any

import numpy as np
import pytest
from tasks import elmo_block, tok2vec, train, with_tasks

from spacy_elmo.errors import SettingsError
from spacy_elmo.pipeline.mixes import learned_mixes


def block_with(elmo: Any, output_elmo: Any) -> dict[str, Any]:
    return tok2vec() | {"elmo": elmo, "output_elmo": output_elmo}


def test_elmo_at_the_output_alone() -> None:
    nlp = with_tasks("tagger", block=block_with(None, elmo_block()))
    losses = [train(nlp, updates)["tagger"] for updates in (1, 25)]
    assert losses[1] < losses[0]
    assert [mix.place for mix in learned_mixes(nlp)] == ["output"]
    tagger: Any = nlp.get_pipe("tagger")
    model = tagger.model.get_ref("tok2vec")
    doc = nlp("Paris likes green ham")
    (both,) = model.predict([doc])
    (h,) = model.get_ref("encode").predict(model.get_ref("embed").predict([doc]))
    (mixed,) = model.get_ref("output_elmo").predict([doc])
    np.testing.assert_array_equal(both, np.concatenate([h, mixed], axis=1))
    assert model.get_dim("nO") == both.shape[1]


def test_elmo_at_no_place() -> None:
    with pytest.raises(SettingsError, match=r"elmo and output_elmo .* are both null"):
        with_tasks("tagger", block=block_with(None, None))
