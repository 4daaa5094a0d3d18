"""The configs of networks: each change is there, nothing else differs, and spaCy can build them."""

from pathlib import Path
from typing import Any

import pytest
from spacy.util import load_config, load_model_from_config

from scripts.corpora.convert_conll import SENTENCES
from scripts.runs.ablations import ABLATIONS, CHANGES, UPDATES
from scripts.runs.experiments import ALTERNATIVES, NETWORKS, TASKS, Network, Task
from scripts.runs.network_configs import network_config, share_of
from spacy_elmo.errors import CommandError
from spacy_elmo.formats.options import read_options

ROOT = Path(__file__).parents[3]
NEWSWIRE, EWT, ARTICLES = ABLATIONS
NER = TASKS[0]
TOK2VEC = "components.ner.model.tok2vec"


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """All settings by their full names."""
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        name: leaf for key, value in tree.items() for name, leaf in leaves(value, f"{path}.{key}".strip(".")).items()
    }


def differences(task: Task, network: Network) -> dict[str, Any]:
    """The settings in which a network's config differs from [x; ELMo], with its values. ... stands for no setting."""
    before, after = (leaves(network_config(ROOT, task, one)) for one in (NETWORKS["elmo"], network))
    names = [name for name in {**before, **after} if before.get(name, ...) != after.get(name, ...)]
    return {name: after.get(name, ...) for name in names}


def test_the_main_networks_are_the_files() -> None:
    for name, stem in (("baseline", "ner"), ("elmo", "ner_elmo")):
        assert network_config(ROOT, NER, NETWORKS[name]) == load_config(ROOT / "configs" / f"{stem}.cfg")


def test_the_settings_of_a_task() -> None:
    config = network_config(ROOT, NEWSWIRE, NETWORKS["baseline"])
    assert config["paths"]["train"] == "corpus/ner_newswire/train.spacy"
    assert config["training"]["max_steps"] == UPDATES


def test_a_bilm_of_another_width() -> None:
    folder = "packages/en_midi/spacy_elmo_en_midi"
    assert differences(NER, NETWORKS["midi"]) == {
        "components.elmo.model.options_file": f"{folder}/options.json",
        "components.elmo.model.weight_file": f"{folder}/weights.hdf5",
        f"{TOK2VEC}.elmo.source.width": 512,
        f"{TOK2VEC}.output_elmo.source.width": 512,
    }
    assert read_options(ROOT / folder / "options.json").width == 512


def test_changes() -> None:
    mixes = [f"{TOK2VEC}.{place}.mix" for place in ("elmo", "output_elmo")]
    assert differences(NEWSWIRE, CHANGES["l2_1"]) == {f"{mix}.l2": 1.0 for mix in mixes}
    assert differences(NEWSWIRE, CHANGES["fixed"]) == {f"{mix}.trainable": False for mix in mixes}
    assert differences(NEWSWIRE, CHANGES["float16"]) == {"components.elmo.store": "layers_float16"}
    unfrozen = differences(NEWSWIRE, CHANGES["unfrozen"])
    assert unfrozen["components.elmo.frozen"] is False
    assert unfrozen["training.before_update.start"] == UPDATES // 5
    removed = differences(NEWSWIRE, CHANGES["input"])
    assert removed.pop(f"{TOK2VEC}.output_elmo") is None
    assert removed
    assert all(value is ... and name.startswith(f"{TOK2VEC}.output_elmo.") for name, value in removed.items())


def test_the_carried_state() -> None:
    """Both networks read the sentences of the corpus, and differ in the state alone."""
    zero, carried = (network_config(ROOT, ARTICLES, ARTICLES.networks[name]) for name in ("elmo", "carried"))
    assert zero["components"]["elmo"]["model"]["get_spans"]["keys"] == [SENTENCES] == list(ARTICLES.given)
    assert zero["corpora"]["train"]["augmenter"] == zero["corpora"]["dev"]["augmenter"]
    assert zero["corpora"]["dev"]["augmenter"]["keys"] == [SENTENCES]
    assert zero["paths"]["dev"] == ARTICLES.tests["dev"] == "corpus/ner_newswire/dev_articles.spacy"
    before, after = leaves(zero), leaves(carried)
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"components.elmo.model.stateful"}
    assert "carried" not in NEWSWIRE.networks  # its docs have one sentence


def test_elmo_at_another_place() -> None:
    config = network_config(ROOT, EWT, CHANGES["both"])
    for name in ("tagger", "morphologizer", "parser"):
        tok2vec = config["components"][name]["model"]["tok2vec"]
        assert tok2vec["elmo"] == tok2vec["output_elmo"]
        assert tok2vec["elmo"] is not tok2vec["output_elmo"]
    config = network_config(ROOT, EWT, CHANGES["output"])
    assert config["components"]["parser"]["model"]["tok2vec"]["elmo"] is None


def test_weights_of_spacys_pretraining() -> None:
    """The same x, in a component of its own that begins with the weights."""
    before = network_config(ROOT, NER, NETWORKS["baseline"])
    after = network_config(ROOT, ALTERNATIVES, ALTERNATIVES.networks["pretrained"])
    assert after["initialize"]["init_tok2vec"] == "assets/pretrained/model-last.bin"
    assert after["pretraining"]["component"] == "tok2vec"
    assert after["nlp"]["pipeline"] == ["tok2vec", "ner"]
    assert after["components"]["tok2vec"]["model"] == before["components"]["ner"]["model"]["tok2vec"]
    assert after["components"]["ner"]["model"]["tok2vec"]["upstream"] == "tok2vec"
    assert after["training"] == before["training"]


def test_shares() -> None:
    assert share_of("corpus/ner/train.spacy", 3) == "corpus/ner/train-3.spacy"
    assert differences(EWT, EWT.networks["elmo_10"]) == {"paths.train": "corpus/tagger/en_ewt-ud-train-10.spacy"}


@pytest.mark.parametrize("task", [*TASKS, ALTERNATIVES, *ABLATIONS], ids=lambda task: task.name)
def test_static_vectors(task: Task) -> None:
    for name, network in task.networks.items():
        config = leaves(network_config(ROOT, task, network))
        included = [value for key, value in config.items() if key.endswith("include_static_vectors")]
        assert included
        assert set(included) == {name.startswith("vectors")}
        assert config["initialize.vectors"] == ("assets/vectors" if network.vectors else "${paths.vectors}")


@pytest.mark.slow
@pytest.mark.parametrize("task", [ALTERNATIVES, *ABLATIONS], ids=lambda task: task.name)
def test_spacy_builds_all_of_them(task: Task, tmp_path: Path) -> None:
    for network in task.networks.values():
        path = tmp_path / "config.cfg"
        network_config(ROOT, task, network).to_disk(path)
        load_model_from_config(load_config(path), auto_fill=False, validate=True)


@pytest.mark.parametrize("name", ["training.nothing", "nothing.seed", "training.batcher.size.nothing"])
def test_a_setting_that_is_not_there(name: str) -> None:
    with pytest.raises(CommandError, match="there is no setting"):
        network_config(ROOT, NER, NETWORKS["elmo"]._replace(settings={name: 1}))
