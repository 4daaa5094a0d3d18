"""Configs of the networks, systems that learn nothing, paragraphs that were read, and a user's own data."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import load_model_from_config
from spacy.vocab import Vocab

from scripts.bilms import latin
from scripts.runs import evaluate_runs, train_runs
from scripts.runs.experiments import (
    NETWORKS,
    TASKS,
    keep_result,
    networks_of,
    read_results,
    seeds_of,
    tasks_of,
)
from scripts.runs.read_paragraphs import read_ones
from scripts.runs.train_runs import bilm_mark, bilm_of, network_config
from scripts.runs.trivial_systems import main as trivial
from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.answers import make_question
from spacy_elmo.tasks.coreference import annotate

ROOT = Path(__file__).parents[2]
VOCAB = Vocab()
Scores = Callable[..., dict[str, float]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project with the configs."""
    for folder in ("configs", "packages"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_networks_differ_in_what_they_are_named_for(project: Path, task: train_runs.Task) -> None:
    networks = [one for name, one in NETWORKS.items() if name != "pretrained" or task.config == "ner"]
    assert len({network_config(task, network).to_str() for network in networks}) == len(networks)


@pytest.mark.parametrize("network", ["elmo", "pretrained"])
def test_spacy_accepts_a_network(network: str, project: Path) -> None:
    load_model_from_config(network_config(TASKS[0], NETWORKS[network]), validate=True)


def test_what_is_changed_in_a_config(project: Path) -> None:
    assert bilm_of(network_config(TASKS[0], NETWORKS["elmo"])) == bilm_mark()
    assert bilm_of(network_config(TASKS[0], NETWORKS["mini"])) == ""
    with pytest.raises(CommandError, match=r"there is no setting training\.sped"):
        network_config(TASKS[0]._replace(settings={"training.sped": 1}), NETWORKS["elmo"])


def test_what_is_asked_for() -> None:
    assert seeds_of("0 7") == [0, 7]
    assert networks_of("elmo baseline") == ["elmo", "baseline"]
    for call in (lambda: seeds_of("0 0"), lambda: seeds_of("a"), lambda: seeds_of("")):
        with pytest.raises(CommandError, match="Expected different whole numbers"):
            call()
    with pytest.raises(CommandError, match="--networks is 'x'"):
        networks_of("x")
    with pytest.raises(CommandError, match=r"the task is 'x'\. Expected one of ner, "):
        tasks_of(["ner", "x"])
    assert tasks_of(["all"]) == list(TASKS)


def test_records_are_kept(project: Path) -> None:
    keep_result("ner", "b", {"score": 0.1})
    keep_result("ner", "a", {"text": "é"})
    keep_result("ner", "b", {"score": 1 / 3})
    assert read_results("ner") == {"a": {"text": "é"}, "b": {"score": 1 / 3}}
    assert len(Path("results/ner.json").read_text(encoding="utf-8").splitlines()) == 4
    with pytest.raises(CommandError, match="no trained run in it"):
        evaluate_runs.main(["ner"])


@pytest.fixture
def scores(project: Path) -> Scores:
    """Scores of a trivial system on docs, which are its training part as well."""

    def run(task: str, *docs: Doc) -> dict[str, float]:
        Path("corpus", task).mkdir(parents=True)
        for part in ("train", "test", "sick_test"):
            DocBin(store_user_data=True, docs=docs).to_disk(Path("corpus", task, f"{part}.spacy"))
        trivial([task])
        found: dict[str, float] = read_results(task)["trivial"]["tests"]["test"]
        return found

    return run


def test_trivial_roles(scores: Scores) -> None:
    doc = Doc(VOCAB, words=["Yesterday", "Mary", "gave", "John", "books", "."])
    doc.spans["predicates"] = [doc[2:3]]
    parts = ((0, 1, "ARGM-TMP"), (1, 2, "ARG0"), (2, 3, "V"), (3, 4, "ARG2"), (4, 5, "ARG1"))
    doc.spans["roles:2"] = [Span(doc, start, end, label) for start, end, label in parts]
    got = scores("roles", doc)
    assert (got["roles_p"], got["roles_r"]) == (0.5, 0.25)  # of ARG0 and ARG1, ARG0 is right; four are to be found


def test_trivial_coreference(scores: Scores) -> None:
    text = "When Anna Lee met Bob , she saw Anna Lee . Then He left"
    doc = Doc(VOCAB, words=text.split())
    annotate(doc, [[(1, 3), (6, 7), (8, 10)], [(4, 5), (12, 13)]])
    got = scores("coreference", doc)
    assert got["coref_mentions_f"] == 1.0  # "When" and "Then" begin sentences
    assert (got["coref_muc_p"], got["coref_muc_r"]) == (1.0, 1 / 3)  # one link of three, the one of the same words


def test_trivial_answers(scores: Scores) -> None:
    text = "Rex barks. Anna lives in Bonn. Anna sings."
    asked = "Where does Anna live, in what town of lives?"
    doc = make_question(spacy.blank("en"), asked, text, [(text.index("Bonn"), "Bonn")])
    got = scores("answers", doc)
    assert (got["answers_em"], got["answers_f1"]) == (0.0, 2 * 1 / (4 + 1))  # "anna lives in bonn" and "bonn"


def test_what_was_read(tmp_path: Path) -> None:
    """However a text was split into words; a tenth of the runs of eight words is enough."""
    read = "The cat, which nobody knew, sat on the old mat for a long time. It slept."
    new = "A dog ran through the wide park on every morning of that week. It barked."
    text, other = tmp_path / "text.txt", tmp_path / "other.txt"
    text.write_text("It rained .\nThe cat , which nobody knew , sat on the old mat for a long time .\n")
    assert read_ones([read, new, "Too short."], [text]) == {read}
    other.write_text("a dog ran through the wide park on a sunday\n", encoding="utf8")  # 1 of its 7 fragments
    assert read_ones([read, new], [text, other]) == {read, new}


def test_latin(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts are whole sentences, and each training is a record."""
    for treebank in latin.TREEBANKS:
        for part in latin.PARTS:
            file = Path(f"assets/ud_latin/la_{treebank}-ud-{part}.conllu")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"# {part} {n}\n1\tarma\n\n" for n in range(3)), encoding="utf-8")
    monkeypatch.setattr(latin, "CUT", {"ittb": ("dev", 1)})
    monkeypatch.setattr(latin, "get", lambda *_: None)
    runs = [{"network": "[x; ELMo]", "seed": seed, "scores": dict.fromkeys(latin.SCORES, 0.5)} for seed in (0, 1)]

    def compare(command: str, out: str, *options: str) -> None:
        Path(out).mkdir(parents=True)
        Path(out, "scores.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")

    monkeypatch.setattr(latin, "run_elmo", compare)
    latin.main(seeds=2)
    assert set(read_results("latin")) == {f"{one}/[x; ELMo]/seed-{seed}" for one in latin.TREEBANKS for seed in (0, 1)}
    parts = [Path(f"corpus/latin/ittb-{part}.conllu").read_text(encoding="utf-8").count("\n\n") for part in latin.PARTS]
    assert parts == [1, 2, 3]
    assert Path("corpus/latin/ittb-train.conllu").read_text(encoding="utf-8") == "# dev 0\n1\tarma\n\n"
