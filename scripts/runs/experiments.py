"""What is trained and measured: tasks, the networks that are compared on them, and the files of their results.

training/TASK/NETWORK/seed-N/   model-best, model-last, run.json, log.jsonl (scores at each evaluation)
results/NAME.json               what was measured, a record a line; those of a task are named NETWORK/seed-N; committed
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing

Networks = Annotated[str, typer.Option(help="Separated by blanks")]
Seeds = Annotated[str, typer.Option(help="Separated by blanks")]
Gpu = Annotated[int, typer.Option(help="-1: CPU")]


class Network(NamedTuple):
    """One of the networks that are compared; but for the fine-tuned transformer, they differ in nothing else."""

    title: str  # in tables
    elmo: bool = True
    vectors: str = ""  # folder of static vectors that x contains
    pretrained: bool = False  # the weights of x begin as those of assets/pretrained
    transformer: bool = False  # in the place of ELMo, or without it in that of x (transformer.py)
    settings: Mapping[str, Any] = {}  # changed in the config


def files_of(folder: str) -> dict[str, str]:
    """Return the settings with which the elmo pipe reads the biLM in a folder."""
    files = {"options_file": f"{folder}/options.json", "weight_file": f"{folder}/weights.hdf5"}
    return {f"components.elmo.model.{key}": file for key, file in files.items()}


def _other_bilm(title: str, folder: str) -> Network:
    return Network(title, settings=files_of(folder))


BASELINE, ELMO, MINI, VECTORS, BOTH = "baseline", "elmo", "mini", "vectors", "vectors_elmo"
PRETRAINED, SHORT = "pretrained", "short_bilm"
WORDLLAMA, MINILM, FROZEN = "wordllama", "minilm", "minilm_frozen"
NETWORKS = {
    BASELINE: Network("x alone", elmo=False),
    ELMO: Network("[x; ELMo]"),
    MINI: _other_bilm("[x; en_mini]", "packages/en_mini/spacy_elmo_en_mini"),
    VECTORS: Network("x with static vectors", elmo=False, vectors="assets/vectors"),
    BOTH: Network("[x with static vectors; ELMo]", vectors="assets/vectors"),
    # trained for half an hour of one core, as the vectors are (scripts/bilms/embeddings.py)
    PRETRAINED: Network("x initialised by `spacy pretrain`", elmo=False, pretrained=True),
    SHORT: _other_bilm("[x; a biLM of half an hour]", "assets/short_bilm"),
    WORDLLAMA: Network("x with WordLlama's vectors", elmo=False, vectors="assets/wordllama"),
    MINILM: Network("MiniLM, fine-tuned", elmo=False, transformer=True),
    FROZEN: Network("[x; MiniLM], frozen", transformer=True),
}


class Task(NamedTuple):
    name: str
    title: str  # in the page of results
    measures: Mapping[str, str]  # names in tables, by the keys of spaCy's scores; the first one is in the summary
    tests: Mapping[str, str]  # files of docs that are scored once, by a name; the first one is the test part
    config: str  # stem of its two configs
    settings: Mapping[str, Any] = {}  # changed in the configs
    gold_preproc: bool = False  # whether the corpus's own words and sentences are used for scoring
    given: tuple[str, ...] = ()  # span groups that the pipeline is given for scoring
    paper: tuple[float, str] | None = None  # % of the errors that ELMo removed in Table 1 of Peters et al. 2018; corpus


def _task(name: str, title: str, measures: Mapping[str, str], paper: tuple[float, str] | None, **more: Any) -> Task:
    return Task(name, title, measures, {"test": f"corpus/{name}/test.spacy"}, name, paper=paper)._replace(**more)


def _ner(name: str, title: str, more: Mapping[str, Any] = {}) -> Task:
    paths = {f"paths.{part}": f"corpus/{name}/{part}.spacy" for part in ("train", "dev")}
    measures = {"ents_f": "F1", "ents_p": "precision", "ents_r": "recall"}
    settings = {} if name == "ner" else {**paths, **more}
    return _task(name, title, measures, (21.0, "CoNLL-2003"), config="ner", settings=settings)


_NUMPY = {"nlp.after_pipeline_creation": {"@callbacks": "spacy-elmo.NumpyGemm.v1"}}  # as in configs/tagger.cfg
_EWT = _task(
    "tagger",
    "Tags, morphology and dependencies, UD English EWT",
    {"dep_las": "LAS", "dep_uas": "UAS", "tag_acc": "tags", "pos_acc": "universal tags", "morph_acc": "morphology"},
    None,
    tests={"test": "corpus/tagger/en_ewt-ud-test.spacy"},
    gold_preproc=True,
)
_ROLES = {"roles_f": "F1", "roles_p": "precision", "roles_r": "recall"}
_COREFERENCE = {"coref_f": "mean F1", "coref_muc_f": "MUC", "coref_b3_f": "B-cubed", "coref_ceaf_f": "CEAF-phi4"}
_COREFERENCE |= {"coref_lea_f": "LEA", "coref_mentions_f": "mentions"}
_PAIRS = {"test": "corpus/entailment/test.spacy", "SICK": "corpus/entailment/sick_test.spacy"}
_ENTAILMENT = {"cats_acc": "accuracy", "cats_macro_f": "macro F1"}
TASKS = (
    _ner("ner", "Entities, Broad Twitter"),
    _ner("ner_wnut17", "Entities, WNUT-17"),
    _ner("ner_newswire", "Entities, Worldwide Newswire", _NUMPY),
    _EWT,
    _task("textcat", "Sentiment, SST-5", {"cats_micro_f": "accuracy"}, (6.8, "SST-5")),
    _task("roles", "Semantic roles, PropBank on UD English EWT", _ROLES, (17.2, "OntoNotes"), given=("predicates",)),
    _task("coreference", "Coreference, LitBank", _COREFERENCE, (9.8, "OntoNotes")),
    _task("entailment", "Entailment, SNLI", _ENTAILMENT, (5.8, "SNLI"), tests=_PAIRS),
    _task("answers", "Answers, XQuAD (English)", {"answers_f1": "F1", "answers_em": "exact match"}, (24.9, "SQuAD")),
)

# How scores grow with the sentences for training: a part of them
NEWSWIRE = next(task for task in TASKS if task.name == "ner_newswire")
CURVE = tuple(
    NEWSWIRE._replace(
        name=f"ner_newswire_{part}",
        settings={**NEWSWIRE.settings, "paths.train": f"corpus/ner_newswire/train_{part}.spacy"},
    )
    for part in ("tenth", "third")
)


def tasks_of(names: Sequence[str]) -> list[Task]:
    """Return the tasks of these names; "all": all of them. Raises CommandError."""
    tasks = {task.name: task for task in (*TASKS, *CURVE)}
    if list(names) == ["all"]:
        return list(TASKS)
    if unknown := [name for name in names if name not in tasks]:
        raise CommandError(f"the task is {unknown[0]!r}. Expected one of {', '.join(tasks)}, or all.")
    return [tasks[name] for name in names]


def networks_of(text: str) -> list[str]:
    """Return the names of networks in a text, separated by blanks. Raises CommandError."""
    names = text.split()
    if not names or not set(names) <= NETWORKS.keys():
        expected = ", ".join(NETWORKS)
        raise CommandError(f"--networks is {text!r}. Expected some of {expected}, separated by blanks.")
    return names


def seeds_of(text: str) -> list[int]:
    """Return the seeds in a text, separated by blanks. Raises CommandError for anything else, or for one twice."""
    seeds = text.split()
    if not seeds or not all(map(str.isdecimal, seeds)) or len(set(map(int, seeds))) < len(seeds):
        raise CommandError(f"--seeds is {text!r}. Expected different whole numbers separated by blanks, like 0 1 2.")
    return [int(seed) for seed in seeds]


def folder_of(task: Task, network: str, seed: int) -> Path:
    return Path("training", task.name, network, f"seed-{seed}")


def read_results(name: str) -> dict[str, Any]:
    """Return the records of results/NAME.json; {} without it."""
    path = Path("results", f"{name}.json")
    records: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return records


def keep_result(name: str, key: str, record: Mapping[str, Any]) -> None:
    """Put a record into results/NAME.json, in the place of an earlier one of the same key."""
    path = Path("results", f"{name}.json")
    records = {**read_results(name), key: record}
    lines = [f"{json.dumps(one)}: {json.dumps(records[one], ensure_ascii=False)}" for one in sorted(records)]
    path.parent.mkdir(exist_ok=True)
    with replacing(path, CommandError) as temporary:
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{path}: {key}")


def minutes_since(begin: float) -> float:
    return round((time.perf_counter() - begin) / 60, 1)
