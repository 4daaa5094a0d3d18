"""`elmo init-config`, through spaCy's own app: what it writes trains as it stands."""

import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import spacy
from commands import invoke
from commands import run as run_command
from spacy.cli.init_config import fill_config
from spacy.cli.init_config import init_config as spacy_init_config
from spacy.cli.train import train
from spacy.kb import InMemoryLookupKB
from spacy.tokens import Doc, DocBin, Span
from spacy.util import load_config

from spacy_elmo import bilms

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
GOLDEN_WIDTH = 32
TASKS = (
    "beam_ner",
    "beam_parser",
    "morphologizer",
    "ner",
    "parser",
    "senter",
    "span_finder",
    "spancat",
    "spancat_singlelabel",
    "tagger",
    "textcat",
    "textcat_multilabel",
    "trainable_lemmatizer",
)
TOK2VEC = "spacy-elmo.ElmoTok2Vec.v1"


def run(*arguments: object, code: int = 0) -> str:
    return invoke("elmo", "init-config", *arguments, code=code).output


def error(*arguments: object) -> str:
    return run_command("elmo", "init-config", *arguments, code=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.spacy and dev.spacy with all annotations, and the folder kb: a knowledge base for their entities."""
    folder = tmp_path_factory.mktemp("data")
    nlp = spacy.blank("en")
    docs = []
    for verb, cat in (("likes", 1.0), ("hates", 0.0)):
        words = ["Ada", verb, "eggs", ".", "She", "eats", "."]
        doc = Doc(
            nlp.vocab,
            words=words,
            tags=["NNP", "VBZ", "NNS", ".", "PRP", "VBZ", "."],
            pos=["PROPN", "VERB", "NOUN", "PUNCT", "PRON", "VERB", "PUNCT"],
            morphs=["Number=Sing", "Person=3", "Number=Plur", "", "Person=3", "Person=3", ""],
            lemmas=["Ada", verb[:-1], "egg", ".", "she", "eat", "."],
            heads=[1, 1, 1, 1, 5, 5, 5],
            deps=["nsubj", "ROOT", "obj", "punct", "nsubj", "ROOT", "punct"],
        )
        doc.cats = {"GOOD": cat, "BAD": 1 - cat}
        doc.ents = [Span(doc, 0, 1, label="PERSON", kb_id="Q7259")]
        doc.spans["sc"] = [Span(doc, 0, 1, label="PERSON"), Span(doc, 2, 3, label="FOOD")]
        docs.append(doc)
    DocBin(docs=docs * 20).to_disk(folder / "train.spacy")  # a parser needs each label 30 times
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    knowledge_base = InMemoryLookupKB(nlp.vocab, entity_vector_length=4)
    knowledge_base.add_entity("Q7259", freq=5, entity_vector=[1, 0, 0, 1])
    knowledge_base.add_entity("Q10", freq=5, entity_vector=[0, 1, 1, 0])
    knowledge_base.add_alias("Ada", ["Q7259", "Q10"], [0.5, 0.4])
    knowledge_base.to_disk(folder / "kb")
    return folder


def trained(config: Path, data: Path) -> Any:
    """The pipeline after two steps of `spacy train` with nothing but paths given, and the number of steps."""
    paths = {f"paths.{name}": str(data / f"{name}.spacy") for name in ("train", "dev")}
    output = config.parent / "out"
    train(config, output, overrides=paths | {"training.max_steps": 2})
    return spacy.load(output / "model-last", config={"components.elmo.store": "layers"})  # to look at the vectors


@pytest.fixture(scope="module")
def all_tasks(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The config of all tasks in one pipeline, and that pipeline trained: a training of its own for each costs more."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.cfg"
    run("--pipeline", ", ".join(TASKS), "--optimize", "accuracy", path)
    return load_config(path), trained(path, data)


def networks(config: Any) -> dict[str, Any]:
    """The tok2vec block of each component that has one."""
    return {name: block["model"]["tok2vec"] for name, block in config["components"].items() if name != "elmo"}


# What is written trains


@pytest.mark.slow
def test_each_component_trains(all_tasks: tuple[Any, Any], tmp_path: Path) -> None:
    config, nlp = all_tasks
    assert config["nlp"]["pipeline"] == ["elmo", *TASKS]
    assert {block["@architectures"] for block in networks(config).values()} == {TOK2VEC}
    listeners = {name: len(each) for name, each in nlp.get_pipe("elmo").listener_map.items()}
    assert listeners == dict.fromkeys(TASKS, 2)  # at the input and at the output
    doc = nlp("Ada likes eggs. She eats.")
    for name in TASKS:
        mix = next(node for node in nlp.get_pipe(name).model.walk() if node.name == "scalar_mix")
        assert mix.get_param("gamma")[0] != 1, name  # it has learnt: the listener's layers reach the component
        assert len(doc._.elmo_layers) == len(mix.get_param("w")) == 3
    run("--pipeline", "ner", "--optimize", "accuracy", tmp_path / "ner.cfg")  # one alone is as among others
    alone = load_config(tmp_path / "ner.cfg")["components"]
    assert alone == {key: config["components"][key] for key in ("elmo", "ner")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pipeline", "keys"),
    [("ner", None), ("entailment,answers", ["premise", "hypothesis", "question", "context"])],
)
def test_each_text_of_a_pair_is_a_sentence(pipeline: str, keys: list[str] | None, tmp_path: Path) -> None:
    run("--pipeline", pipeline, tmp_path / "task.cfg")
    config = load_config(tmp_path / "task.cfg")
    getter = config["components"]["elmo"]["model"]["get_spans"]
    name = "spacy-elmo.sentences.v1" if keys is None else "spacy-elmo.span_groups.v1"
    assert (getter["@span_getters"], getter.get("keys")) == (name, keys)
    assert {block["@architectures"] for block in networks(config).values()} == {TOK2VEC}


@pytest.mark.slow
def test_entity_linker_trains_on_a_bilm_of_its_own(data: Path, tmp_path: Path) -> None:
    run("--pipeline", "entity_linker,sentencizer", "--knowledge-base", data / "kb", tmp_path / "nel.cfg")
    config = load_config(tmp_path / "nel.cfg")
    assert config["nlp"]["pipeline"] == ["sentencizer", "elmo", "entity_linker"]
    assert config["training"]["annotating_components"] == ["sentencizer"]
    source = networks({"components": {"x": config["components"]["entity_linker"]}})["x"]["elmo"]["source"]
    assert (source["@architectures"], source["width"]) == ("spacy-elmo.BiLM.v1", None)
    assert config["components"]["elmo"]["store"] == "layers"  # "none" would warn: nobody listens
    nlp = trained(tmp_path / "nel.cfg", data)
    assert nlp.get_pipe("elmo").listening_components == []
    doc = nlp.make_doc("Ada likes eggs .")
    doc.ents = [Span(doc, 0, 1, label="PERSON")]
    assert nlp(doc).ents[0].kb_id_ in ("Q7259", "Q10")


@pytest.mark.slow
@pytest.mark.parametrize("by_files", [True, False])
def test_another_bilm(by_files: bool, data: Path, tmp_path: Path) -> None:
    files = ["--options-file", GOLDEN / "options.json", "--weight-file", GOLDEN / "weights.hdf5"]
    named = files if by_files else ["--model", GOLDEN]
    linker = ["--pipeline", "senter,tagger,entity_linker", "--knowledge-base", data / "kb"]
    run(*linker, *named, tmp_path / "other.cfg")
    config = load_config(tmp_path / "other.cfg", interpolate=True)
    assert config["training"]["annotating_components"] == ["senter"]
    components = config["components"]
    expected = (None, str(GOLDEN / "options.json"), str(GOLDEN / "weights.hdf5"))
    for block in (components["elmo"]["model"], components["entity_linker"]["model"]["tok2vec"]["elmo"]["source"]):
        found = (block["bilm"], block["options_file"], block["weight_file"])
        assert found == (expected if by_files else (str(GOLDEN), None, None))
    assert components["tagger"]["model"]["tok2vec"]["elmo"]["source"]["width"] is None
    assert trained(tmp_path / "other.cfg", data)("Ada eats.")._.elmo.shape == (3, GOLDEN_WIDTH)


# What is in it


@pytest.mark.slow
@pytest.mark.parametrize("optimize", ["efficiency", "accuracy"])
def test_sizes_are_the_quickstarts(optimize: str, tmp_path: Path) -> None:
    run("--pipeline", "tagger", "--optimize", optimize, tmp_path / "a.cfg")
    network = networks(load_config(tmp_path / "a.cfg"))["tagger"]
    quickstart = spacy_init_config(pipeline=["tagger"], optimize=optimize).interpolate()
    expected = quickstart["components"]["tok2vec"]["model"]
    assert network["embed"] == expected["embed"] | {"include_static_vectors": False}
    assert network["encode"] == expected["encode"]
    assert (network["output_elmo"] is not None) == (optimize == "accuracy")


def test_what_is_not_elmos_is_as_spacy_has_it(tmp_path: Path) -> None:
    """Nothing is left to fill."""
    pipeline, path = ["parser", "textcat"], tmp_path / "task.cfg"
    options = ("--lang", "xx", "--pipeline", ",".join(pipeline))
    run(*options, path)
    config, expected = load_config(path), spacy_init_config(lang="xx", pipeline=pipeline)
    for section in ("paths", "system", "corpora", "training", "initialize"):
        assert config[section] == expected[section]
    assert config["nlp"] == expected["nlp"] | {"pipeline": ["elmo", *pipeline]}
    nlp = spacy.blank("xx")
    for name in pipeline:
        nlp.add_pipe(name)
        defaults = nlp.get_pipe_config(name)
        for block in (config["components"][name]["model"], defaults["model"]):
            del block["tok2vec"]
        assert config["components"][name] == defaults | {"factory": name}
    assert run(*options, "-") == path.read_text(encoding="utf8")  # and nothing but the config
    before, after = fill_config(tmp_path / "filled.cfg", path, silent=True)
    assert before == after


@pytest.mark.slow
@pytest.mark.parametrize("name", ["semantic_roles", "coreference", "entailment", "answers"])
def test_the_mixes_of_the_papers_other_tasks_are_those_of_the_experiments(name: str, tmp_path: Path) -> None:
    run("--pipeline", f"ner,{name}", "--optimize", "accuracy", tmp_path / "task.cfg")
    written = networks(load_config(tmp_path / "task.cfg"))
    form = {"semantic_roles": "roles"}.get(name, name)
    experiment = load_config(Path(__file__).parents[2] / "configs" / f"{form}_elmo.cfg")["components"][name]
    expected = experiment["model"]["tok2vec"]["elmo"]["mix"]
    assert written[name]["elmo"]["mix"] == written[name]["output_elmo"]["mix"] == expected
    assert (written["ner"]["elmo"]["mix"]["gamma"], written["ner"]["elmo"]["mix"]["dropout"]) == (1.0, 0.0)


@pytest.mark.slow
def test_the_sentencizer_runs_first_also_in_training(data: Path, tmp_path: Path) -> None:
    """It has no part in the score."""
    run("--pipeline", "ner,sentencizer", tmp_path / "ner.cfg")
    config = load_config(tmp_path / "ner.cfg")
    assert config["nlp"]["pipeline"] == ["sentencizer", "elmo", "ner"]
    assert config["training"]["annotating_components"] == ["sentencizer"]
    weights = config["training"]["score_weights"]
    assert {key: value for key, value in weights.items() if value} == {"ents_f": 1.0}
    assert [weights[f"sents_{letter}"] for letter in "fpr"] == [None] * 3  # no columns of the table
    nlp = trained(tmp_path / "ner.cfg", data)
    both = nlp("Ada likes eggs. She eats.")
    alone = nlp("Ada likes eggs.")
    assert abs(both._.elmo[:4] - alone._.elmo).max() < 1e-5


# What is refused


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("sentencizer", "--pipeline names no component that is trained. Expected"),
        ("ner,tagger,ner", "--pipeline names 'ner' twice"),
        *(
            (f"ner,{name}", f"--pipeline names '{name}'. Expected components that are trained on a tok2vec")
            for name in ("elmo", "tok2vec", "nre", "", "entity_ruler", "nn_labeller")
        ),
        ("sentencizer,parser", "--pipeline names 'sentencizer' and 'parser'"),
        ("sentencizer,entity_linker", "entity_linker in --pipeline needs --knowledge-base"),
        ("entity_linker,parser --knowledge-base kb", "which needs sentences, but no component before it sets them"),
        ("tagger --knowledge-base kb", "One was given"),
        ("sentencizer,entity_linker --knowledge-base gone", "which has no file contents"),
        ("sentencizer,entity_linker --knowledge-base kb kb/contents --force", "the same"),
        ("ner --lang qqq", "the language is 'qqq', which can't be used"),
        ("ner --model gone", "'gone' names no biLM: there is no such folder"),
        ("ner --model en_core --options-file options.json", "--model and --options-file were given"),
        ("ner --options-file options.json", "weight_file"),
        ("ner --options-file options.json --weight-file weights.hdf5 weights.hdf5 --force", "the same"),
        ("ner --model a$b", "has $, with which a variable begins in a config"),
        ("ner mine.cfg", "exists. Give another file, or add --force"),
    ],
)
def test_refusals(pipeline: str, message: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(data / "kb", "kb")
    shutil.copytree(GOLDEN, ".", dirs_exist_ok=True)
    Path("a$b").symlink_to(Path(bilms.__file__).parent / "en_core")
    Path("mine.cfg").touch()
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    arguments = ["--lang", "xx", "--pipeline", *pipeline.split(" ")]  # English takes four times as long to make
    if arguments[-1] not in ("mine.cfg", "--force"):
        arguments.append("task.cfg")
    assert message in error(*arguments)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_all_known_components_are_told() -> None:
    points = distribution("spacy-elmo").entry_points
    ours = [point.name for point in points if point.group == "spacy_factories" and point.name != "elmo"]
    expected = ", ".join(sorted([*TASKS, *ours, "entity_linker"]))
    assert f"separated by commas: {expected}; and sentencizer" in error("--pipeline", "sentencizer", "-")


def test_a_file_is_replaced_if_that_is_asked(tmp_path: Path) -> None:
    output = tmp_path / "task.cfg"
    output.write_text("mine", encoding="utf8")
    assert "no earlier command of this kind has written it" in error("--pipeline", "ner", output, "--force")
    output.write_text("[paths]\nmine = 1\n", encoding="utf8")
    run("--lang", "xx", "--pipeline", "ner", "-m", "en_core", output, "--force")
    elmo = load_config(output)["components"]["elmo"]
    assert (elmo["model"]["bilm"], elmo["store"]) == ("en_core", "none")  # no vectors are carried along
