"""Listeners of components that are disabled while spaCy links the pipeline, and enabled later."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from tasks import examples, tok2vec, train, with_tasks
from thinc.api import SGD, Config, fix_random_seed

from spacy_elmo.pipeline.listening import _HELD

TEXT = "Paris likes green ham"


def said(nlp: Language) -> Any:
    doc = nlp(TEXT)
    return [token.tag_ for token in doc], [(span.start, span.end, span.label_) for span in doc.ents]


def trained(folder: Path, **elmo: Any) -> Language:
    nlp = with_tasks("tagger", "ner", **elmo)
    train(nlp, 20)
    nlp.to_disk(folder)
    return nlp


@pytest.mark.slow
@pytest.mark.parametrize("component", ["tagger", "ner"])
@pytest.mark.parametrize("store", ["layers", "none"])
def test_enabled_after_it_was_loaded_disabled(store: str, component: str, tmp_path: Path) -> None:
    expected = said(trained(tmp_path, store=store))
    assert expected[0][0]
    nlp = spacy.load(tmp_path, disable=[component])
    nlp(TEXT)
    nlp.enable_pipe(component)
    assert said(nlp) == expected
    nlp.disable_pipe(component)
    nlp.add_pipe("sentencizer")  # spaCy links the pipeline again
    nlp.remove_pipe("sentencizer")
    nlp.enable_pipe(component)
    doc = nlp(TEXT)
    assert doc not in _HELD  # all have read it
    assert said(nlp) == expected


@pytest.mark.slow
@pytest.mark.parametrize("components", [["tagger"], ["ner"], ["tagger", "ner"]])
def test_a_tuned_bilm_learns_from_them(components: list[str], tmp_path: Path) -> None:
    trained(tmp_path, frozen=False)
    weights = []
    for disabled in ([], components):
        nlp = spacy.load(tmp_path, disable=disabled)
        for name in disabled:
            nlp.enable_pipe(name)
        before = nlp.get_pipe("elmo").model.shims[0].to_arrays()
        fix_random_seed(0)  # ner cuts its gold at random
        nlp.update(examples(nlp), sgd=SGD(1.0))
        after = nlp.get_pipe("elmo").model.shims[0].to_arrays()
        assert any((before[name] != after[name]).any() for name in before)
        weights.append(after)
    for name, expected in weights[0].items():
        np.testing.assert_allclose(weights[1][name], expected, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_spacy_train_with_a_frozen_component_and_an_elmo_of_its_own(tmp_path: Path) -> None:
    nlp = with_tasks("tagger", store="none")
    train(nlp, 20)
    nlp.to_disk(tmp_path / "source")
    tags = said(nlp)[0]
    DocBin(docs=[eg.reference for eg in examples(nlp)]).to_disk(tmp_path / "train.spacy")
    config = Config(with_tasks("tagger", "ner", store="none").config)
    config["components"]["tagger"] = {"source": str(tmp_path / "source")}
    config["paths"].update(train=str(tmp_path / "train.spacy"), dev=str(tmp_path / "train.spacy"))
    config["training"]["frozen_components"] = ["tagger"]
    started = init_nlp(config.interpolate())  # links the pipeline while the tagger is disabled
    assert said(started)[0] == tags


def test_a_removed_component_is_forgotten() -> None:
    nlp = with_tasks("tagger", "ner", block=tok2vec(output=True), store="none")
    train(nlp, 1)
    elmo = nlp.get_pipe("elmo")
    assert len(elmo.upstreams) == 4
    nlp.remove_pipe("ner")
    gc.collect()
    assert elmo.listening_components == ["tagger"]
    assert len(elmo.upstreams) == 2
    assert nlp(TEXT) not in _HELD
