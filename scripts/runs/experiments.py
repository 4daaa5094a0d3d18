"""What is trained and measured: tasks, and the networks that are compared on them.

training/TASK/NETWORK/config.cfg   with which the network is trained
training/TASK/NETWORK/seed-N/      model-best, model-last, run.json, log.jsonl (scores at each evaluation)
results/TASK/NETWORK/seed-N.json   what was measured of a run; committed
results/TASK/NETWORK/speed.json    words a second of the first run, measured in turns with the other networks
results/embeddings/NAME.json       how long the training of an embedding took
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Measure(NamedTuple):
    """A score. key: its name in spaCy's scores. name: its name in tables."""

    key: str
    name: str


class Network(NamedTuple):
    """One of the networks that are compared; they differ in nothing else.

    title: in tables.
    elmo: whether it has ELMo.
    vectors: whether its x contains the static vectors of assets/vectors.
    pretrained: whether the weights of its x begin as those of assets/pretrained.
    settings: changed in the config.
    mix: settings of every scalar mix.
    places: where ELMo stands, of "input" and "output"; empty: as in the config.
    blocks: sections that are put into the config.
    share: of the training part that it learns from, in %.
    width: of the vectors of another biLM than the embedded one; None: as in the config.
    """

    title: str
    elmo: bool
    vectors: bool = False
    pretrained: bool = False
    settings: Mapping[str, Any] = {}
    mix: Mapping[str, Any] = {}
    places: tuple[str, ...] = ()
    blocks: Mapping[str, Mapping[str, Any]] = {}
    share: int = 100
    width: int | None = None


def other_bilm(title: str, folder: str, width: int | None = None) -> Network:
    """Return the network [x; ELMo] with another biLM than the embedded one.

    folder: with its two files.
    width: of its vectors; None: as in the config, which is that of the embedded one.
    """
    files = {"options_file": f"{folder}/options.json", "weight_file": f"{folder}/weights.hdf5"}
    settings = {f"components.elmo.model.{key}": file for key, file in files.items()}
    return Network(title, elmo=True, settings=settings, width=width)


BASELINE, ELMO, MIDI = "baseline", "elmo", "midi"
NETWORKS = {
    BASELINE: Network("x alone", elmo=False),
    ELMO: Network("[x; ELMo]", elmo=True),
    "random": other_bilm("[x; biLM with random weights]", "assets/random_bilm"),
    "vectors": Network("x with static vectors", elmo=False, vectors=True),
    "vectors_elmo": Network("[x with static vectors; ELMo]", elmo=True, vectors=True),
    MIDI: other_bilm("[x; ELMo] with en_midi", "packages/en_midi/spacy_elmo_en_midi", width=512),
}


class Task(NamedTuple):
    """A task.

    name: of its folders.
    title: in the page of results.
    measures: its scores. The first one is in the summary.
    tests: files of docs that are scored once, by a name; the first one is the task's test part.
    config: stem of its two configs, if it is not the name.
    settings: changed in the configs.
    gold_preproc: whether the corpus's own words and sentences are used for scoring.
    given: span groups that the pipeline is given for scoring.
    paper: share of the errors that ELMo removed in Table 1 of Peters et al. 2018, in %; None: not among its tasks.
    networks: that are compared on it, by their names.
    tried: settings that were tried on the development part before those of the configs were chosen.
    """

    name: str
    title: str
    measures: tuple[Measure, ...]
    tests: Mapping[str, str]
    config: str = ""
    settings: Mapping[str, Any] = {}
    gold_preproc: bool = False
    given: tuple[str, ...] = ()
    paper: float | None = None
    networks: Mapping[str, Network] = NETWORKS
    tried: str = "none."


_TRIED_NER = (
    "with and without averages of the weights, for both networks. With seed 0, the scores on the development part are "
    "66.9 (x alone) and 70.6 ([x; ELMo]). One change at a time gave: 66.8 and 68.7 (batches of 1,000 words from the "
    "start), 65.0 and 70.5 (a dropout of 0.6), 67.4 and 71.0 (2 layers of the encoder), 66.1 and 69.8 (a rate of "
    "0.0003). For [x; ELMo] alone, a layer norm of each token in the mixes gave 70.6; another dropout of the mixes was "
    "tried, too. How many were tried before these was not written down."
)


_GEMM = {"nlp.after_pipeline_creation": {"@callbacks": "spacy-elmo.NumpyGemm.v1"}}  # as in configs/tagger.cfg


def _ner(name: str, title: str, paper: float | None, more: Mapping[str, Any] = {}) -> Task:
    parts = {"train": f"corpus/{name}/train.spacy", "dev": f"corpus/{name}/dev.spacy"}
    return Task(
        name,
        title,
        (Measure("ents_f", "F1"), Measure("ents_p", "precision"), Measure("ents_r", "recall")),
        {"test": f"corpus/{name}/test.spacy"},
        config="ner",
        settings={} if name == "ner" else {f"paths.{part}": path for part, path in parts.items()} | dict(more),
        paper=paper,
        tried=_TRIED_NER if name == "ner" else "none; the settings are those of Broad Twitter.",
    )


_PAPER_NER = 21.0
TASKS = (
    _ner("ner", "Entities, Broad Twitter", _PAPER_NER),
    _ner("ner_wnut17", "Entities, WNUT-17", _PAPER_NER),
    _ner("ner_newswire", "Entities, Worldwide Newswire", _PAPER_NER, _GEMM),
    Task(
        "tagger",
        "Tags, morphology and dependencies, UD English EWT",
        (
            Measure("dep_las", "LAS"),
            Measure("dep_uas", "UAS"),
            Measure("tag_acc", "tags"),
            Measure("pos_acc", "universal tags"),
            Measure("morph_acc", "morphology"),
        ),
        {"test": "corpus/tagger/en_ewt-ud-test.spacy"},
        gold_preproc=True,
    ),
    Task(
        "textcat",
        "Sentiment, SST-5",
        (Measure("cats_micro_f", "accuracy"),),
        {"test": "corpus/textcat/test.spacy"},
        paper=6.8,
    ),
    Task(
        "roles",
        "Semantic roles, PropBank on UD English EWT",
        (Measure("roles_f", "F1"), Measure("roles_p", "precision"), Measure("roles_r", "recall")),
        {"test": "corpus/roles/test.spacy"},
        given=("predicates",),
        paper=17.2,
        tried="one other batch size, learning rate, dropout and depth of the encoder each, for both networks.",
    ),
    Task(
        "coreference",
        "Coreference, LitBank",
        (
            Measure("coref_f", "mean F1"),
            Measure("coref_muc_f", "MUC"),
            Measure("coref_b3_f", "B-cubed"),
            Measure("coref_ceaf_f", "CEAF-phi4"),
            Measure("coref_lea_f", "LEA"),
            Measure("coref_mentions_f", "mentions"),
        ),
        {"test": "corpus/coreference/test.spacy"},
        paper=9.8,
        tried="none for x alone. For ELMo, a mix that begins at gamma 1 with a dropout of 0.4. It made no difference: "
        "58.6 %, and 58.7 % with the config's gamma 3 and dropout 0.2 (after 640 updates).",
    ),
    Task(
        "entailment",
        "Entailment, SNLI",
        (Measure("cats_acc", "accuracy"), Measure("cats_macro_f", "macro F1")),
        {"test": "corpus/entailment/test.spacy", "SICK": "corpus/entailment/sick_test.spacy"},
        paper=5.8,
        tried="another batch size and dropout, for both networks. For ELMo, a mix that begins at gamma 1 with a "
        "dropout of 0.4: it had 61.3 % after 900 updates with seed 0, the config's gamma 3 and dropout 0.2 had 63.8 %, "
        "and x alone 59.4 % (earlier weights of `en_mini`).",
    ),
    Task(
        "answers",
        "Answers, XQuAD (English)",
        (Measure("answers_f1", "F1"), Measure("answers_em", "exact match")),
        {"test": "corpus/answers/test.spacy"},
        paper=24.9,
        tried="another number of epochs, for both networks. ELMo's mix has the gamma and dropout of entailment.",
    ),
)

# what a user would take instead, trained for half an hour of one core on the text of the biLM (train_embedding.py)
ALTERNATIVES = TASKS[0]._replace(
    name="alternatives",
    networks={
        "pretrained": Network("x initialised by `spacy pretrain`", elmo=False, pretrained=True),
        "short_bilm": other_bilm("[x; a biLM of half an hour]", "assets/short_bilm"),
    },
)


def folder_of(project: Path, task: str, network: str, seed: int) -> Path:
    """Return the folder in which a run is trained."""
    return project / "training" / task / network / f"seed-{seed}"


def config_of(project: Path, task: str, network: str) -> Path:
    """Return the file of the config with which a network is trained."""
    return project / "training" / task / network / "config.cfg"


def result_of(project: Path, task: str, network: str, seed: int) -> Path:
    """Return the file of what was measured of a run."""
    return project / "results" / task / network / f"seed-{seed}.json"


def speed_of(project: Path, task: str, network: str) -> Path:
    """Return the file of a network's words a second."""
    return project / "results" / task / network / "speed.json"


def embedding_of(project: Path, name: str) -> Path:
    """Return the file of how long the training of an embedding took."""
    return project / "results" / "embeddings" / f"{name}.json"


def trivial_of(project: Path, task: str) -> Path:
    """Return the file of the scores of a system that learns nothing."""
    return project / "results" / task / "trivial.json"
