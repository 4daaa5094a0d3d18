"""Components that train on [x; ELMo] through listeners, on a frozen biLM."""

import logging
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import GOLDEN, files, pipeline
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from tasks import EMBEDS, ENCODES, TEXTS, WIDTH, add_task, elmo_block, examples, tok2vec, train, with_tasks
from thinc.api import Config, Model

from spacy_elmo.errors import ChangedBiLMWarning, NotEmbeddedError, SettingsError
from spacy_elmo.formats import read_options, read_weights, write_weights
from spacy_elmo.models.listener import build_listener

TEXT = "Paris likes green ham"
COMPONENTS = (
    "tagger",
    "morphologizer",
    "parser",
    "ner",
    "spancat",
    "span_finder",
    "textcat",
    "textcat_multilabel",
    "senter",
    "trainable_lemmatizer",
)


def output(nlp: Any, text: str = TEXT) -> Any:
    """All that components of a pipeline say of a text."""
    return said_of(nlp(text))


def said_of(doc: Any) -> Any:
    """The annotations but for ELMo's own. Scores rounded: a word from the cache and one encoded anew differ a bit."""
    data = doc.to_json()
    data.pop("_", None)
    return data | {"cats": {name: round(score, 3) for name, score in data.get("cats", {}).items()}}


@pytest.mark.slow
@pytest.mark.parametrize("component", COMPONENTS)
def test_component_trains_saves_and_replaces(component: str, tmp_path: Path) -> None:
    nlp = with_tasks(component, block=tok2vec(output=True))
    first = train(nlp, 1)[component]
    losses = train(nlp, 25)
    assert losses["elmo"] == 0.0
    assert losses[component] < first
    assert nlp.get_pipe("elmo").listening_components == [component]
    said = output(nlp)
    nlp.to_disk(tmp_path / "a")
    loaded = spacy.load(tmp_path / "a")
    assert output(loaded) == said
    assert output(spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())) == said
    loaded.replace_listeners("elmo", component, ["model.tok2vec", "model.tok2vec"])
    assert loaded.get_pipe("elmo").listeners == []
    loaded.remove_pipe("elmo")
    assert output(loaded) == said
    loaded.to_disk(tmp_path / "b")
    assert output(spacy.load(tmp_path / "b")) == said


@pytest.mark.slow
@pytest.mark.parametrize(("embed", "encode"), [*zip(EMBEDS, ENCODES), ("multi_hash", "none")])
def test_embeddings_and_encoders(embed: str, encode: str, tmp_path: Path) -> None:
    nlp = with_tasks("tagger", block=tok2vec(embed, encode, output=True))
    if embed == "vectors":
        nlp.vocab.set_vector("ham", np.ones(8, "f"))
    first = train(nlp, 1)["tagger"]
    assert train(nlp, 15)["tagger"] < first
    nlp.to_disk(tmp_path)
    assert output(spacy.load(tmp_path)) == output(nlp)


def test_learns_what_elmo_alone_can_tell() -> None:
    """Without words of its own the component has nothing but the listener."""
    nlp = with_tasks("tagger", block=elmo_block())
    gold = examples(nlp)
    nlp.initialize(lambda: gold)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.05
    for _ in range(60):
        nlp.update(gold, sgd=optimizer)
    for example in gold:
        predicted = nlp(example.text)
        assert [t.tag_ for t in predicted if not t.is_space] == [t.tag_ for t in example.reference if not t.is_space]
    mix = next(node for node in nlp.get_pipe("tagger").model.walk() if node.name == "scalar_mix")
    assert np.abs(mix.get_param("w")).max() > 0.01
    assert abs(float(mix.get_param("gamma")[0]) - 1) > 0.01


def test_the_linear_layer_stands_where_widths_differ() -> None:
    def linear(encode: str) -> Any:
        nlp = with_tasks("tagger", block=tok2vec(encode=encode))
        train(nlp, 1)
        return next(node for node in nlp.get_pipe("tagger").model.walk() if node.name == "linear")

    assert linear("maxout").get_param("W").shape == (16, 48)
    assert linear("same_width").has_param("W") is None


@pytest.mark.slow
def test_frozen_weights_do_not_change_and_spacy_has_nothing_to_warn_of(caplog: Any, tmp_path: Path) -> None:
    nlp = with_tasks("tagger", "ner")
    before = nlp.get_pipe("elmo").model.shims[0].to_bytes()
    DocBin(docs=[eg.reference for eg in examples(nlp)]).to_disk(tmp_path / "train.spacy")
    paths = {"train": str(tmp_path / "train.spacy"), "dev": str(tmp_path / "train.spacy")}
    config = Config(nlp.config).merge({"paths": paths, "training": {"frozen_components": []}})
    with caplog.at_level(logging.WARNING, logger="spacy"):
        started = init_nlp(config.interpolate())
    assert not caplog.records
    started.update(examples(started))
    assert started.get_pipe("elmo").model.shims[0].to_bytes() == before


def test_spacys_frozen_components() -> None:
    nlp = with_tasks("tagger")
    train(nlp, 1)
    losses: dict[str, float] = {}
    nlp.update(examples(nlp), exclude=["elmo"], annotates=["elmo"], losses=losses)
    assert losses["tagger"] > 0


@pytest.mark.slow
def test_without_the_pipe_an_error_names_it(tmp_path: Path) -> None:
    nlp = with_tasks("tagger")
    train(nlp, 1)
    nlp.to_disk(tmp_path)
    nlp.remove_pipe("elmo")
    for other in (nlp, spacy.load(tmp_path, disable="elmo")):
        with pytest.raises(
            NotEmbeddedError, match=r"'elmo', but a doc has .*doc\._\.elmo_layers: .* is disabled, removed"
        ):
            other("A text")
    with pytest.raises(NotEmbeddedError, match="there is none before it"):
        spacy.load(tmp_path, exclude="elmo")("A text")


def test_sample_docs_alone_get_zeros() -> None:
    """Until the pipeline is initialised, or training begins. The zeros have the layers of the biLM."""
    nlp = with_tasks("tagger")
    gold, docs = examples(nlp), [nlp.make_doc("two words")]
    nlp.initialize(lambda: gold)
    tagger = nlp.get_pipe("tagger")
    for others in ([example.predicted for example in gold], docs):
        with pytest.raises(NotEmbeddedError, match="a doc has nothing in"):
            tagger.predict(others)
    [listener] = nlp.get_pipe("elmo").listeners
    listener.initialize(X=docs)
    [zeros] = listener.predict(docs)
    assert (zeros.shape, zeros.any()) == ((3, 2, 32), False)
    listener.begin_update([nlp("A doc that the pipe has seen")])
    with pytest.raises(NotEmbeddedError, match="a doc has nothing in"):
        listener.predict(docs)


def test_a_listener_without_a_pipeline() -> None:
    model = spacy.registry.resolve({"model": elmo_block(width=32)})["model"]
    docs = [spacy.blank("xx").make_doc(text) for text in TEXTS]
    model.initialize(X=docs)
    assert [(y.shape, y.any()) for y in model.predict(docs)] == [((len(doc), 32), False) for doc in docs]
    no_width = spacy.registry.resolve({"model": elmo_block()})["model"]
    other = [docs[0].copy()]
    for use in (lambda: model.predict(other), lambda: model.begin_update(other), lambda: no_width.initialize(X=docs)):
        with pytest.raises(NotEmbeddedError, match="there is none before it"):
            use()


@pytest.mark.parametrize(("golden", "width"), [("random_a", 32), ("random_b", 64)])
def test_without_a_width_it_is_that_of_the_pipe(golden: str, width: int, tmp_path: Path) -> None:
    nlp = with_tasks("tagger", block=tok2vec(output=True), golden=golden)
    train(nlp, 2)
    assert nlp.get_pipe("tagger").model.get_ref("tok2vec").get_dim("nO") == 16 + width
    nlp.to_disk(tmp_path)
    assert output(spacy.load(tmp_path)) == output(nlp)


def test_width_that_is_given() -> None:
    nlp = with_tasks("tagger", block=tok2vec(output=True, width=WIDTH))
    assert nlp.get_pipe("tagger").model.get_ref("tok2vec").get_dim("nO") == 16 + WIDTH  # before any file is read


def test_width_that_no_source_tells() -> None:
    @spacy.registry.architectures("no_width.v1")
    def no_width() -> Any:
        return Model("no_width", lambda model, docs, is_train: ([], lambda dY: []))

    nlp = pipeline(None, {"@architectures": "no_width.v1"})
    add_task(nlp, "tagger", tok2vec())
    with pytest.raises(SettingsError, match=r"width is null .* the pipe 'elmo' does not tell its width\. Set width"):
        nlp.initialize(lambda: examples(nlp))


def two_embedders(second: str = "random_b") -> Any:
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", name="a", config=files("random_a") | {"attr": "a"})
    nlp.add_pipe("elmo", name="b", config=files(second) | {"attr": "b"})
    return nlp


@pytest.mark.slow
def test_two_embedders(tmp_path: Path) -> None:
    nlp = two_embedders()
    width = nlp("x")._.b.shape[1]
    block = tok2vec(upstream="a") | {"output_elmo": elmo_block("b", width)}
    add_task(nlp, "tagger", block)
    train(nlp, 5)
    assert nlp.get_pipe("a").listening_components == nlp.get_pipe("b").listening_components == ["tagger"]
    mixes = [node for node in nlp.get_pipe("tagger").model.walk() if node.name == "scalar_mix"]
    assert sorted(len(mix.get_param("w")) for mix in mixes) == [3, 4]
    said = output(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert output(loaded) == said
    loaded.replace_listeners("a", "tagger", ["model.tok2vec"])
    loaded.remove_pipe("a")
    assert output(loaded) == said
    assert len(loaded.get_pipe("b").listeners) == 1


@pytest.mark.slow
def test_any_upstream_with_two_embedders() -> None:
    nlp = two_embedders("random_a")
    add_task(nlp, "tagger", tok2vec())
    with pytest.raises(SettingsError, match="several elmo pipes before this component: 'a', 'b'"):
        train(nlp, 1)
    for name, other in (("b", "a"), ("a", "c")):
        nlp.remove_pipe(name)
        if other == "c":
            nlp.add_pipe("elmo", name="c", first=True, config=files("random_a") | {"attr": "c"})
        train(nlp, 1)
        assert nlp.get_pipe(other).listening_components == ["tagger"]
    nlp.add_pipe("elmo", name="d", first=True, config=files("random_a") | {"attr": "d"})
    with pytest.raises(SettingsError, match="several elmo pipes before this component: 'd', 'c'"):
        train(nlp, 1)


@pytest.mark.slow
def test_sourced_component(tmp_path: Path) -> None:
    source = with_tasks("tagger")
    train(source, 10)
    said = output(source)
    source.to_disk(tmp_path / "source")
    other = with_tasks()
    other.add_pipe("tagger", source=spacy.load(tmp_path / "source"))
    assert output(other) == said
    sourced = {"source": str(tmp_path / "source")}
    for components in (
        {"tagger": sourced | {"replace_listeners": ["model.tok2vec"]}},
        {"elmo": sourced, "tagger": sourced},
    ):
        config = {"nlp": {"lang": "xx", "pipeline": list(components)}, "components": components}
        nlp = spacy.blank("xx").from_config(config)
        assert output(nlp) == said
        nlp.to_disk(tmp_path / "saved")
        assert output(spacy.load(tmp_path / "saved")) == said


@pytest.mark.slow
def test_swapped_bilm(tmp_path: Path) -> None:
    nlp = with_tasks("tagger")
    train(nlp, 2)
    shutil.copytree(GOLDEN / "random_a", tmp_path / "other")
    options = read_options(tmp_path / "other" / "options.json")
    arrays = read_weights(tmp_path / "other" / "weights.hdf5", options)
    arrays["char_cnn.embedding.weight"] = arrays["char_cnn.embedding.weight"] * 2
    write_weights(tmp_path / "other" / "weights.hdf5", options, arrays)

    def swapped(config: dict[str, Any]) -> Any:
        nlp.remove_pipe("elmo")
        nlp.add_pipe("elmo", first=True, config=config)
        return nlp

    swapped(files("random_a"))(TEXT)  # the same one, from its files
    with pytest.raises(SettingsError, match="width is 32"):
        swapped({})(TEXT)
    with pytest.warns(ChangedBiLMWarning, match="'elmo' is not the one with which this component was trained"):
        swapped({"model": {"bilm": str(tmp_path / "other")}})(TEXT)
    nlp(TEXT)  # said once


@pytest.mark.slow
def test_a_shared_component_reads_what_its_own_pipeline_wrote() -> None:
    nlp = with_tasks("tagger")
    train(nlp, 2)
    expected = [token.tag_ for token in nlp(TEXT)]
    other = spacy.blank("xx")
    other.add_pipe("elmo", config={**files("random_a"), "attr": "e2"})
    other.add_pipe("tagger", source=nlp)
    for which in (other, nlp, other):
        assert [token.tag_ for token in which(TEXT)] == expected
    train(nlp, 1)
    assert len(other(TEXT)) == len(nlp(TEXT))


@pytest.mark.slow
def test_deep_in_a_chain() -> None:
    linear = {"@layers": "with_array.v1", "layer": {"@layers": "Linear.v1", "nO": 8}}
    inner: dict[str, Any] = {"@layers": "chain.v1", "*": {"a": elmo_block(), "b": linear}}
    block = {"@layers": "concatenate.v1", "*": {"elmo": inner, "x": EMBEDS["multi_hash"]}}
    nlp = with_tasks("tagger", block=block)
    first = train(nlp, 1)["tagger"]
    assert train(nlp, 20)["tagger"] < first


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tagger", "ner", "textcat"])
def test_bilm_of_its_own(name: str, tmp_path: Path) -> None:
    block = tok2vec()
    block["elmo"]["source"] = {"@architectures": "spacy-elmo.BiLM.v1"} | files("random_a")["model"]
    nlp = spacy.blank("xx")
    add_task(nlp, name, block)
    first = train(nlp, 1)[name]
    assert train(nlp, 20)[name] < first
    nlp.to_disk(tmp_path)
    assert output(spacy.load(tmp_path)) == output(nlp)


def test_store_mix_has_no_layers_to_listen_to() -> None:
    nlp = with_tasks("tagger", store="mix")
    with pytest.raises(NotEmbeddedError, match='store = "mix"'):
        train(nlp, 1)


@pytest.mark.slow
def test_processes_and_pickle() -> None:
    nlp = with_tasks("tagger", "ner")
    train(nlp, 20)
    said = [output(nlp, text) for text in TEXTS]
    for doc, expected in zip(nlp.pipe(TEXTS, n_process=2, batch_size=1), said):
        assert said_of(doc) == expected
    assert [output(pickle.loads(pickle.dumps(nlp)), text) for text in TEXTS] == said


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"width": 0}, "width is 0"), ({"width": "256"}, "width is '256'"), ({"upstream": ""}, "''")],
)
def test_bad_settings_of_a_listener(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build_listener(**settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "paths",
    [
        ["model.tok2vec.elmo.source", "model.tok2vec.output_elmo.source"],
        ["model.tok2vec", "model.tok2vec.output_elmo.source"],
        ["model.tok2vec.elmo", "model.tok2vec.output_elmo"],
        ["model.tok2vec.elmo.source", "model.tok2vec.elmo.source"],
    ],
)
def test_any_paths_in_the_block_replace_its_listeners(paths: list[str], tmp_path: Path) -> None:
    nlp = with_tasks("tagger", block=tok2vec(output=True))
    train(nlp, 2)
    said = output(nlp)
    nlp.replace_listeners("elmo", "tagger", paths)
    block = nlp.config["components"]["tagger"]["model"]["tok2vec"]
    assert block.keys() == tok2vec().keys()
    for part in ("elmo", "output_elmo"):
        assert block[part]["source"] == nlp.get_pipe_config("elmo")["model"] | {"width": None}
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path)
    assert output(spacy.load(tmp_path)) == said


def test_width_that_the_files_do_not_have() -> None:
    block = tok2vec()
    block["elmo"]["source"] = {"@architectures": "spacy-elmo.BiLM.v1", "width": 64} | files("random_a")["model"]
    nlp = spacy.blank("xx")
    add_task(nlp, "tagger", block)
    with pytest.raises(SettingsError, match=r"width is 64 in spacy-elmo.BiLM.v1, but its files give 32"):
        train(nlp, 1)


def test_a_source_where_a_mix_of_it_belongs() -> None:
    block = tok2vec()
    block["elmo"] = block["elmo"]["source"]
    with pytest.raises(SettingsError, match=r"elmo of spacy-elmo.ElmoTok2Vec.v1 is a source"):
        with_tasks("tagger", block=block)


@pytest.mark.slow
def test_a_model_of_ones_own(tmp_path: Path) -> None:
    @spacy.registry.architectures("constant_layers.v1")
    def constant_layers() -> Any:
        def forward(model: Any, docs: Any, is_train: bool) -> Any:
            return [np.ones((2, len(doc), 8), "f") for doc in docs], lambda dY: []

        return Model("constant", forward)

    nlp = pipeline(None, {"@architectures": "constant_layers.v1"})
    add_task(nlp, "tagger", tok2vec(width=8))
    train(nlp, 3)
    said = output(nlp)
    nlp.to_disk(tmp_path / "a")
    assert output(spacy.load(tmp_path / "a")) == said
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "b")
    assert output(spacy.load(tmp_path / "b")) == said
