"""What is trained and measured, and where project.yml puts it.

training/TASK/KIND/seed-N/   model-best, model-last, run.json (seconds, dev scores)
metrics/TASK/KIND/seed-N.json   what `spacy evaluate` wrote for the test part
"""

from __future__ import annotations

from typing import NamedTuple


class Measure(NamedTuple):
    """A score. key: its name in spaCy's metrics. name: its name in tables."""

    key: str
    name: str


class Task(NamedTuple):
    """A task.

    name: of its folders.
    title: in the page of results.
    kinds: of networks, the baseline first.
    measures: its scores. The first one is plotted.
    """

    name: str
    title: str
    kinds: tuple[str, ...]
    measures: tuple[Measure, ...]


BASELINE = "baseline"
KINDS = {
    BASELINE: "without ELMo",
    "elmo": "with ELMo",
    "random": "with a biLM of random weights",
}
_ENTITIES = (Measure("ents_f", "F1"), Measure("ents_p", "precision"), Measure("ents_r", "recall"))
TASKS = (
    Task("ner", "Entities, Broad Twitter", (BASELINE, "elmo", "random"), _ENTITIES),
    Task("ner_wnut17", "Entities, WNUT-17", (BASELINE, "elmo"), _ENTITIES),
    Task(
        "tagger",
        "Tags, morphology and dependencies, UD English EWT",
        (BASELINE, "elmo"),
        (
            Measure("dep_las", "LAS"),
            Measure("dep_uas", "UAS"),
            Measure("tag_acc", "tags"),
            Measure("pos_acc", "universal tags"),
            Measure("morph_acc", "morphology"),
        ),
    ),
    Task(
        "coreference",
        "Coreference, LitBank",
        (BASELINE, "elmo"),
        (
            Measure("coref_f", "mean F1"),
            Measure("coref_muc_f", "MUC"),
            Measure("coref_b3_f", "B-cubed"),
            Measure("coref_ceaf_f", "CEAF-phi4"),
            Measure("coref_lea_f", "LEA"),
            Measure("coref_mentions_f", "mentions"),
        ),
    ),
    Task("textcat", "Sentiment, SST-5", (BASELINE, "elmo"), (Measure("cats_micro_f", "accuracy"),)),
    Task(
        "answers",
        "Answers, XQuAD (English)",
        (BASELINE, "elmo"),
        (Measure("answers_f1", "F1"), Measure("answers_em", "exact match")),
    ),
    Task(
        "entailment",
        "Entailment, SNLI",
        (BASELINE, "elmo"),
        (Measure("cats_acc", "accuracy"), Measure("cats_macro_f", "macro F1")),
    ),
    Task(
        "roles",
        "Semantic roles, PropBank on UD English EWT",
        (BASELINE, "elmo"),
        (Measure("roles_f", "F1"), Measure("roles_p", "precision"), Measure("roles_r", "recall")),
    ),
)
