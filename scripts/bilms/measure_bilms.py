"""Measure the biLMs that the project ships: perplexities, a probe of tags, and the bytes of their files.

    python -m scripts.bilms.measure_bilms en_mini en_midi --wikipedia heldout.txt --novels novels.heldout.txt

Newswire and tweets are the development parts of two of the tasks, in corpus/. First install what the biLMs predict
words with: pip install ./packages/en_mini_softmax ./packages/en_midi
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.modules.loading import find_bilm
from spacy_elmo.pretraining.language_model import SOFTMAX, WEIGHTS, LanguageModel, softmax_folder

from ..shared.command import run_command
from ..shared.measurement import Measurement
from ..shared.messages import Messages
from .measures import Text, bilm_result_of, check_corpora, check_text, perplexity, read_text, tag_accuracies

BILMS = ("en_mini", "en_midi")
NOVELS = 3000  # sentences that are read of the novels, the first ones
NEWSWIRE, TWEETS = Path("corpus/ner_newswire/dev.spacy"), Path("corpus/ner/dev.spacy")


def measure(bilm: str, model: LanguageModel, texts: dict[str, Text]) -> dict[str, Any]:
    """Return what docs/results.md tells of a biLM.

    bilm: its name.
    model: the biLM with its softmax.
    texts: that it has not read, by their names.
    """
    folder = find_bilm(bilm)
    files = [folder / WEIGHTS, (softmax_folder(bilm) or folder) / SOFTMAX]
    return {
        "weights": sha256_of(folder / WEIGHTS)[:12],
        "parameters": model.bilm.options.n_parameters,
        "bytes": {file.name: file.stat().st_size for file in files},
        "perplexities": {name: perplexity(model, text) for name, text in texts.items()},
        "tags": tag_accuracies(bilm),
    }


def main(
    bilms: Annotated[list[str], typer.Argument(help="en_mini, en_midi or both")],
    wikipedia: Annotated[Path, typer.Option(help="The held-out text of Wikipedia")],
    novels: Annotated[Path, typer.Option(help="The held-out text of novels")],
) -> None:
    """Write results/bilms/NAME.json for each of BILMS."""
    for bilm in bilms:
        if bilm not in BILMS:
            raise CommandError(Messages.BILM.format(got=bilm, expected=", ".join(BILMS)))
    check_text(wikipedia, "wikipedia")
    check_text(novels, "novels")
    check_corpora((NEWSWIRE, TWEETS))
    texts = {"wikipedia": read_text(wikipedia), "novels": read_text(novels, NOVELS)}
    texts |= {"newswire": read_text(NEWSWIRE), "tweets": read_text(TWEETS)}
    models = {bilm: LanguageModel.load(bilm) for bilm in bilms}  # all of them before the first one takes minutes
    for bilm, model in models.items():
        measurement = Measurement()
        options = ["--wikipedia", str(wikipedia), "--novels", str(novels)]
        command = shlex.join(["python", "-m", "scripts.bilms.measure_bilms", bilm, *options])
        measurement.write(bilm_result_of(Path(), bilm), command, measure(bilm, model, texts))


if __name__ == "__main__":
    run_command(main)
