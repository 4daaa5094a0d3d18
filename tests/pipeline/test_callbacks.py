"""numpy's matrix products: in one pipeline alone, with the same scores up to rounding, also after loading."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.util import load_config, load_model_from_config
from tasks import tok2vec, train, with_tasks
from thinc.api import Config, NumpyOps, get_current_ops

from spacy_elmo.errors import SettingsError
from spacy_elmo.pipeline.callbacks import build_numpy_gemm, build_replace_listeners

NER = Path(__file__).parents[2] / "configs" / "ner_elmo.cfg"
CALLBACK = {"@callbacks": "spacy-elmo.NumpyGemm.v1"}


def pipeline(callback: dict[str, str] | None) -> Language:
    config: dict[str, Any] = load_config(NER)
    config["nlp"]["after_pipeline_creation"] = callback
    config["corpora"].update(train=None, dev=None)
    nlp = load_model_from_config(Config(config), auto_fill=True)
    nlp.get_pipe("ner").add_label("PER")  # type: ignore[attr-defined]
    return nlp


def uses_blis(nlp: Language) -> set[bool]:
    return {node.ops.use_blis for _, pipe in nlp.pipeline for node in pipe.model.walk()}  # type: ignore[attr-defined]


@pytest.mark.slow
def test_numpy_multiplies(tmp_path: Path) -> None:
    before, nlp = pipeline(None), pipeline(CALLBACK)
    assert (uses_blis(before), uses_blis(nlp)) == ({True}, {False})
    current = get_current_ops()
    assert isinstance(current, NumpyOps)
    assert current.use_blis  # other pipelines are not changed
    vectors = []
    for one in (before, nlp):
        spacy.util.fix_random_seed(0)
        one.initialize()
        doc = one.get_pipe("elmo")(one.make_doc("Anna Schmidt lives in Bonn ."))
        vectors.append(one.get_pipe("ner").model.get_ref("tok2vec").predict([doc]))  # type: ignore[attr-defined]
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-4)
    nlp.get_pipe("ner").add_label("LOC")  # type: ignore[attr-defined]
    assert uses_blis(nlp) == {True, False}  # until the pipeline is loaded again
    nlp.to_disk(tmp_path / "saved")
    assert uses_blis(spacy.load(tmp_path / "saved")) == {False}


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


def test_a_component_that_was_trained_on_another_width_stays_as_it_was() -> None:
    nlp, other = with_tasks("tagger"), spacy.blank("xx")
    train(nlp, 1)
    other.add_pipe("elmo")
    other.add_pipe("tagger", source=nlp)
    before = other.config.to_str()
    with pytest.raises(SettingsError, match=r"width is 32 in .* the biLM of the pipe 'elmo' gives 512"):
        build_replace_listeners()(other)
    assert other.config.to_str() == before


def test_pipelines_without_networks_or_listeners_stay() -> None:
    nlp = with_tasks()
    nlp.add_pipe("sentencizer")
    for callback in (build_replace_listeners(), build_numpy_gemm()):
        assert callback(nlp) is nlp
        assert nlp.pipe_names == ["elmo", "sentencizer"]
        assert callback(spacy.blank("xx")).pipe_names == []
