"""Write docs/predictions.md: what the trained components say about ten sentences that no corpus has.

python -m scripts.pages.predictions
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing
from spacy_elmo.tasks.answers import make_questions
from spacy_elmo.tasks.entailment import make_pairs
from spacy_elmo.tasks.roles import roles_table

from ..runs.experiments import ELMO
from ..shared.command import run_command
from ..shared.messages import Messages
from .results_tables import table

SENTENCES = (
    "Maria bought an old house near the river last spring .",
    "Her brother Tom helped her to repair the roof .",
    "He had worked as a carpenter for ten years .",
    "The neighbours brought them soup when it rained .",
    "In July a storm damaged the garden wall .",
    "Tom built it again with stones from the river .",
    "Maria paid him with a dinner at the harbour .",
    "She now rents two rooms to students from Lisbon .",
    "They say that the house is the quietest place in town .",
    "Maria wants to sell it only when she is eighty .",
)
QUESTIONS = (
    "Who helped Maria ?",
    "When did the storm come ?",
    "What did Tom use to build the wall ?",
    "Where are the students from ?",
    "How long had Tom worked as a carpenter ?",
)
PAIRS = (
    (SENTENCES[0], "Maria owns a house ."),
    (SENTENCES[0], "Maria sold her house ."),
    (SENTENCES[1], "Tom is older than Maria ."),
    (SENTENCES[3], "The neighbours gave them food ."),
    (SENTENCES[4], "The wall was not harmed ."),
    (SENTENCES[7], "The students like music ."),
)
_INTRODUCTION = """\
# Predictions

What the four components of [the paper's other tasks](tasks.md) say about ten sentences that were written for this page,
right or wrong. The components are those of the first runs on [x; ELMo] in [the results](results.md). After these were
trained, `python -m spacy project run predictions` writes this page; do not edit it by hand."""


def roles(nlp: Language) -> Iterator[str]:
    """Return a table of the roles of each predicate that was found."""
    rows: list[list[str]] = []
    for doc in nlp.pipe(SENTENCES):
        shown = doc.text  # once
        for predicate in dict.fromkeys(role.predicate for role in roles_table(doc)):
            parts = [role for role in roles_table(doc) if role.predicate == predicate and role.label != "V"]
            rows.append([shown, doc[predicate].text, ", ".join(f"{role.label}: *{role.text}*" for role in parts)])
            shown = ""
    yield table(["sentence", "predicate", "roles"], rows)


def coreference(nlp: Language) -> Iterator[str]:
    """Return the clusters of the sentences as one text."""
    doc = nlp(" ".join(SENTENCES))
    for cluster in doc._.coref_clusters:
        if len(cluster) > 1:
            yield "- " + ", ".join(f"*{mention.text}* ({mention.sent.text.split()[0]} ...)" for mention in cluster)


def entailment(nlp: Language) -> Iterator[str]:
    """Return a table of the classes of the pairs."""
    rows = []
    for (premise, hypothesis), doc in zip(PAIRS, nlp.pipe(make_pairs(nlp, PAIRS))):
        best = max(doc.cats, key=lambda label: doc.cats[label])
        rows.append([premise, hypothesis, best, f"{doc.cats[best]:.2f}"])
    yield table(["premise", "hypothesis", "class", "probability"], rows)


def answers(nlp: Language) -> Iterator[str]:
    """Return a table of the answers to the questions about the sentences as one text."""
    rows = []
    text = " ".join(SENTENCES)
    for question, doc in zip(QUESTIONS, nlp.pipe(make_questions(nlp, [(one, text) for one in QUESTIONS]))):
        best = doc.spans["answer"][0]
        rows.append([question, best.text, f"{best._.answer_score:.2f}"])
    yield table(["question", "answer", "score"], rows)


PARTS: dict[str, tuple[str, Callable[[Language], Iterator[str]]]] = {
    "roles": ("Semantic roles", roles),
    "coreference": ("Coreference", coreference),
    "entailment": ("Entailment", entailment),
    "answers": ("Answers to questions", answers),
}


def write_predictions(project: Path, output: Path) -> None:
    """Write the page of the tasks that have a run on [x; ELMo]. Raises CommandError if none has one."""
    parts = [_INTRODUCTION]
    for task, (title, predict) in PARTS.items():
        runs = sorted((project / "training" / task / ELMO).glob("seed-*/run.json"))
        models = [run.parent / "model-best" for run in runs]
        if models:
            parts += [f"## {title}", "\n".join(predict(spacy.load(models[0])))]
    if len(parts) == 1:
        raise CommandError(Messages.NO_RUNS.format(path=project / "training"))
    with replacing(output, CommandError) as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main(
    project: Annotated[Path, typer.Argument(help="Folder with training/")] = Path("."),
    output: Annotated[Path, typer.Option(help="The page")] = Path("docs/predictions.md"),
) -> None:
    """Write the page of predictions."""
    write_predictions(project, output)
    print(f"wrote {output}")


if __name__ == "__main__":
    run_command(main)
