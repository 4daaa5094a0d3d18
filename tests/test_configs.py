"""The configs of the experiments: a baseline and its ELMo form differ in ELMo alone; nothing is left to defaults."""

from pathlib import Path
from typing import Any

import pytest
import srsly
from spacy import registry
from spacy.schemas import ConfigSchemaTraining
from spacy.util import load_config, load_model_from_config
from thinc.api import Config

ROOT = Path(__file__).parents[1]
NAMES = ("tagger", "ner", "textcat", "answers", "entailment", "coreference", "roles")
FORMS = [f"{name}{form}" for name in NAMES for form in ("", "_elmo")]
ELMO = {
    "@architectures": "spacy-elmo.Tok2Vec.v1",
    "source": {"@architectures": "spacy-elmo.Listener.v1", "width": None, "upstream": "elmo"},
}


def load(name: str, *, interpolate: bool = False) -> Config:
    return load_config(ROOT / "configs" / f"{name}.cfg", interpolate=interpolate)


def without_elmo(tree: Any) -> Any:
    """The same settings with the baseline's block in the place of each ElmoTok2Vec."""
    if not isinstance(tree, dict):
        return tree
    if tree.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1":
        assert tree.keys() == {"@architectures", "output_elmo", "embed", "elmo", "encode"}
        return {"@architectures": "spacy.Tok2Vec.v2", "embed": tree["embed"], "encode": tree["encode"]}
    return {key: without_elmo(value) for key, value in tree.items()}


def elmo_blocks(tree: Any) -> list[dict[str, Any]]:
    if not isinstance(tree, dict):
        return []
    own = [tree] if tree.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1" else []
    return own + [block for value in tree.values() for block in elmo_blocks(value)]


@pytest.mark.parametrize("name", NAMES)
def test_only_elmo_differs(name: str) -> None:
    baseline, elmo = load(name), load(f"{name}_elmo")
    before = [pipe for pipe in baseline["nlp"]["pipeline"] if pipe == "sentencizer"]
    assert elmo["nlp"]["pipeline"][: len(before) + 1] == [*before, "elmo"]
    assert elmo["components"].pop("elmo")["factory"] == "elmo"
    elmo["nlp"]["pipeline"].remove("elmo")
    for pipe in elmo["nlp"]["pipeline"][len(before) :]:  # each with ELMo once, at the input
        (block,) = elmo_blocks(elmo["components"][pipe])
        mix = block["elmo"].pop("mix")
        assert block["elmo"] == ELMO
        assert mix["@layers"] == "spacy-elmo.ScalarMix.v1"
        assert (mix["layers"], mix["layer_norm"], mix["trainable"]) == (None, "none", True)
    assert without_elmo(dict(elmo)) == dict(baseline)


@pytest.mark.parametrize(
    "name", [name if "tagger" in name else pytest.param(name, marks=pytest.mark.slow) for name in FORMS]
)
def test_every_setting_is_written(name: str) -> None:
    config = load(name)
    nlp = load_model_from_config(config, auto_fill=True, validate=True)
    assert nlp.config.to_str() == config.to_str()
    resolved = load(name, interpolate=True)
    training = registry.resolve(resolved["training"], schema=ConfigSchemaTraining)
    assert training["patience"] > 0  # stops early, on the development part


def test_the_paths_are_what_the_project_makes() -> None:
    commands = srsly.read_yaml(ROOT / "project.yml")["commands"]
    named = {word for command in commands for line in command["script"] for word in line.split()}
    for paths in [load(name)["paths"] for name in FORMS]:
        for path in (paths["train"], paths["dev"]):  # its name, or the folder of what a converter makes
            assert {path, str(Path(path).parent)} & named


def test_settings_that_the_tasks_need() -> None:
    assert load("textcat")["components"]["textcat"]["factory"] == "textcat"  # exclusive classes
    assert load("textcat")["training"]["score_weights"]["cats_micro_f"] == 1.0  # accuracy chooses the best step
    assert load("entailment")["training"]["score_weights"]["cats_acc"] == 1.0
    getter = load("entailment_elmo")["components"]["elmo"]["model"]["get_spans"]
    assert (getter["@span_getters"], getter["keys"]) == ("spacy-elmo.span_groups.v1", ["premise", "hypothesis"])
    for name in ("tagger", "tagger_elmo"):
        assert all(corpus["gold_preproc"] for corpus in load(name)["corpora"].values())
