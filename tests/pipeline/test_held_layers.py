"""Pipelines that store no layers on docs: they are held until all listeners have read them."""

import copy
import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import files, pipeline
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from tasks import add_task, elmo_block, examples, tok2vec, train, with_tasks
from thinc.api import SGD, Config, fix_random_seed

from spacy_elmo import restore_vectors
from spacy_elmo.errors import NotEmbeddedError, UnusedLayersWarning
from spacy_elmo.models.doc_layers import _HELD, held_or_stored

TEXT = "Paris likes green ham"
NONE = {"store": "none"}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    gc.freeze()  # so that a collection looks at the objects of the test alone
    yield
    if _HELD:
        gc.collect()
    gc.unfreeze()
    assert not _HELD  # no doc of the test lives any more


@pytest.fixture(scope="module")
def pair() -> tuple[Language, Language]:
    """Two pipelines with the same weights: one stores the layers, the other nothing."""
    stored = with_tasks("tagger", "ner", block=tok2vec(output=True))
    train(stored, 2)
    passing = with_tasks("tagger", "ner", block=tok2vec(output=True), **NONE)
    train(passing, 1)
    return stored, passing.from_bytes(stored.to_bytes())


def said(doc: Doc) -> Any:
    return [token.tag_ for token in doc], [(span.start, span.end, span.label_) for span in doc.ents]


def test_components_say_the_same_and_nothing_is_stored(pair: tuple[Language, Language]) -> None:
    stored, passing = pair
    texts = [TEXT, "", "Ham is  bad", "\n", "I like London"]
    for docs in (list(map(passing, texts)), list(passing.pipe(texts, batch_size=2))):
        assert [said(doc) for doc in docs] == [said(doc) for doc in stored.pipe(texts)]
        assert not any(len(doc) for doc in _HELD)  # ner leaves out empty docs
        assert not any(isinstance(value, np.ndarray) for doc in docs for value in doc.user_data.values())
    docs = list(passing.pipe([TEXT] * 3, n_process=2))
    assert said(docs[2]) == said(stored(TEXT))
    with pytest.raises(NotEmbeddedError, match='store = "none"'):
        _ = docs[0]._.elmo


def test_layers_are_held_until_the_last_component_has_read(pair: tuple[Language, Language]) -> None:
    nlp = pair[1]
    doc = nlp.get_pipe("elmo")(nlp.make_doc(TEXT))
    assert doc in _HELD
    np.testing.assert_array_equal(held_or_stored(doc, "elmo"), pair[0](TEXT)._.elmo_layers)
    nlp.get_pipe("tagger")(doc)
    nlp.get_pipe("tagger")(doc)  # the other one has not read yet
    assert doc in _HELD
    nlp.get_pipe("ner")(doc)
    assert doc not in _HELD
    with pytest.raises(NotEmbeddedError, match="until each component that listens has predicted on it once"):
        nlp.get_pipe("tagger")(doc)
    nlp.get_pipe("tagger")(nlp.get_pipe("elmo")(doc))


def test_copies_have_none(pair: tuple[Language, Language]) -> None:
    doc = pair[1].get_pipe("elmo")(pair[1].make_doc(TEXT))
    for other in (doc.copy(), Doc(doc.vocab).from_bytes(doc.to_bytes()), pickle.loads(pickle.dumps(doc))):
        with pytest.raises(NotEmbeddedError, match="A copy of the doc has none"):
            pair[1].get_pipe("tagger")(other)


def test_retokenised_docs(pair: tuple[Language, Language]) -> None:
    docs = [nlp.get_pipe("elmo")(nlp.make_doc(TEXT)) for nlp in pair]
    for doc in docs:
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[2:4])
    stored, held = (held_or_stored(doc, "elmo") for doc in docs)
    np.testing.assert_array_equal(held, stored)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False])
def test_training_is_the_same(frozen: bool) -> None:
    losses = []
    for store in ("layers", "none"):
        spacy.util.fix_random_seed(0)
        nlp = with_tasks("tagger", "parser", "ner", store=store, frozen=frozen)
        losses.append(train(nlp, 4))
        assert said(nlp(TEXT))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.slow
def test_training_with_annotating_components() -> None:
    nlp = with_tasks("tagger", "ner", **NONE)
    gold = examples(nlp)
    nlp.initialize(lambda: gold)
    for _ in range(2):
        nlp.update(gold, annotates=["elmo", "tagger", "ner"])
    nlp.update(gold, exclude=["elmo"], annotates=["elmo"])  # as with frozen_components
    assert nlp.evaluate(gold)["tag_acc"] is not None


def test_what_attributes_say(pair: tuple[Language, Language]) -> None:
    doc = pair[1](TEXT)
    message = r'has store = "none": .* config=\{"components.elmo.store": "layers"\}'
    for read in (lambda: doc._.elmo, lambda: doc[1:3]._.elmo_layers, lambda: restore_vectors(doc)):
        with pytest.raises(NotEmbeddedError, match=message):
            read()
    assert not hasattr(doc._, "elmo")
    doc._.elmo = None
    assert not doc.user_data


@pytest.mark.slow
def test_a_saved_pipeline_can_store_again(pair: tuple[Language, Language], tmp_path: Path) -> None:
    pair[1].to_disk(tmp_path / "nlp")
    nlp = spacy.load(tmp_path / "nlp", config={"components.elmo.store": "layers"})
    np.testing.assert_allclose(nlp(TEXT)._.elmo, pair[0](TEXT)._.elmo, rtol=0, atol=1e-5)
    again = spacy.load(tmp_path / "nlp")
    assert again.get_pipe("elmo").store == "none"
    for other in (again, copy.deepcopy(again), pickle.loads(pickle.dumps(again))):
        assert said(other(TEXT)) == said(pair[0](TEXT))


def test_an_earlier_pipe_stored_layers(pair: tuple[Language, Language]) -> None:
    doc = pair[0](TEXT)
    assert said(pair[1](doc)) == said(doc)
    with pytest.raises(NotEmbeddedError, match='store = "none"'):
        _ = doc._.elmo
    assert pair[0](doc)._.elmo.shape == (4, 32)


def test_without_listeners_a_warning() -> None:
    nlp = pipeline(**NONE)
    with pytest.warns(UnusedLayersWarning, match="'elmo' has store = \"none\", but no component listens"):
        doc = nlp(TEXT)
    assert doc not in _HELD
    assert list(doc.user_data.values()) == [True]


@pytest.mark.slow
def test_two_pipes_and_two_pipelines_that_share_a_component() -> None:
    nlp = spacy.blank("xx")
    for name, attr in (("elmo", "elmo"), ("second", "other")):
        nlp.add_pipe("elmo", name=name, config=files("random_a") | NONE | {"attr": attr})
        add_task(nlp, "tagger", elmo_block(upstream=name), name=f"tagger_{name}")
    train(nlp, 2)
    doc = nlp(TEXT)
    assert not _HELD
    other = spacy.blank("xx")
    other.add_pipe("elmo", config=files("random_a") | NONE)
    other.add_pipe("tagger_elmo", source=nlp)
    for pipes in (other, nlp, other):
        assert pipes(TEXT)[0].tag_
        assert not _HELD
    del doc


@pytest.fixture(scope="module", params=["layers", "none"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    nlp, folder = with_tasks("tagger", "ner", store=request.param), tmp_path_factory.mktemp("saved")
    train(nlp, 20)
    nlp.to_disk(folder)
    return folder, said(nlp(TEXT))


@pytest.mark.slow
@pytest.mark.parametrize("component", ["tagger", "ner"])
def test_enabled_after_it_was_loaded_disabled(saved: tuple[Path, Any], component: str) -> None:
    folder, expected = saved
    assert expected[0][0]
    nlp = spacy.load(folder, disable=[component])
    nlp(TEXT)
    nlp.enable_pipe(component)
    assert said(nlp(TEXT)) == expected
    nlp.disable_pipe(component)
    nlp.add_pipe("sentencizer")  # spaCy links the pipeline again
    nlp.remove_pipe("sentencizer")
    nlp.enable_pipe(component)
    doc = nlp(TEXT)
    assert doc not in _HELD  # all have read it
    assert said(doc) == expected


@pytest.mark.slow
@pytest.mark.parametrize("components", [["ner"], ["tagger", "ner"]])
def test_a_tuned_bilm_learns_from_them(components: list[str], saved: tuple[Path, Any]) -> None:
    weights = []
    for disabled in ([], components):
        nlp = spacy.load(saved[0], disable=disabled, config={"components.elmo.frozen": False})
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
def test_spacy_train_with_a_frozen_component_and_an_elmo_of_its_own(saved: tuple[Path, Any], tmp_path: Path) -> None:
    config = Config(with_tasks("tagger", "ner", store="none").config)
    config["components"]["tagger"] = {"source": str(saved[0])}
    DocBin(docs=[eg.reference for eg in examples(spacy.blank("xx"))]).to_disk(tmp_path / "train.spacy")
    config["paths"].update(train=str(tmp_path / "train.spacy"), dev=str(tmp_path / "train.spacy"))
    config["training"]["frozen_components"] = ["tagger"]
    started = init_nlp(config.interpolate())  # links the pipeline while the tagger is disabled
    assert said(started(TEXT))[0] == saved[1][0]


@pytest.mark.slow
def test_only_the_components_of_the_pipeline_are_waited_for() -> None:
    """Not one that was removed, nor the copy of a model alone, as spaCy makes it for rehearsing."""
    nlp = with_tasks("tagger", "ner", block=tok2vec(output=True), store="none")
    train(nlp, 1)
    alone = copy.deepcopy(nlp.get_pipe("tagger").model)
    nlp.remove_pipe("ner")
    gc.collect()
    for each in (nlp, copy.deepcopy(nlp), pickle.loads(pickle.dumps(nlp))):
        assert each.get_pipe("elmo").listening_components == ["tagger"]
        assert each(TEXT) not in _HELD
    doc = nlp.get_pipe("elmo")(nlp.make_doc(TEXT))
    np.testing.assert_array_equal(alone.predict([doc])[0], nlp.get_pipe("tagger").model.predict([doc])[0])
