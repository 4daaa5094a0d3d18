"""Measure biLMs: perplexities, a probe of tags and the bytes of their files.

    python -m scripts.bilms.measure en_core en_mini --wikipedia heldout.txt --novels novels.heldout.txt

Newswire and tweets are the development parts of two of the tasks, in corpus/. First install what the biLMs predict
words with: pip install ./packages/en_core_softmax ./packages/en_mini.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.modules.loading import find_bilm
from spacy_elmo.pretraining.language_model import SOFTMAX, WEIGHTS, LanguageModel, softmax_folder
from spacy_elmo.pretraining.scoring import score_text
from spacy_elmo.text.stream import Report, read_sentences

from ..runs.experiments import keep_result, minutes_since
from ..shared import TAGGED, origin, run_command, run_elmo

NOVELS = 3000  # sentences that are read of the novels, the first ones
NEWSWIRE, TWEETS = Path("corpus/ner_newswire/dev.spacy"), Path("corpus/ner/dev.spacy")
_BAD_SHARE = 0.01  # of a text's lines, which may be left out: one tweet of Broad Twitter has words with blanks


def read_text(path: Path, limit: int | None = None) -> tuple[list[list[str]], int]:
    """Return the sentences of a text, at most `limit`, and how many of its lines can't be used.

    path: a sentence a line, words separated by blanks, or a .spacy file.
    """
    report = Report()
    sentences = list(islice(read_sentences(path, None, report), limit))
    if report.n_bad > _BAD_SHARE * len(sentences) or len(sentences) < (limit or 1):
        got = f"{len(sentences):,} sentences, {report.n_bad:,} lines that can't be used"
        raise CommandError(f"{path}: {got}. Expected {limit or 1:,} sentences or more, and at most 1 % of such lines.")
    return sentences, report.n_bad


def perplexity(model: LanguageModel, sentences: list[list[str]], left_out: int) -> dict[str, Any]:
    """Return the perplexities of a text from the zero state, with and without `<UNK>`, and the text's size."""
    score = score_text(model, sentences)
    sizes = {"sentences": score.sentences, "left_out": left_out, "tokens": score.tokens}
    shares = {"unknown_share": score.unknown_share, "perplexity": score.perplexities.mean}
    return {**sizes, **shares, "without_unknown": score.known_perplexities.mean}


def tag_accuracies(model: str) -> list[float]:
    """Return the accuracies of a linear classifier of universal tags on each layer, and on the mean of the layers."""
    found = json.loads(run_elmo("probe", *TAGGED, "--attr", "upos", "--model", model, "--json", output=True))
    return [float(layer["trained"]["accuracy"]) for layer in found["layers"]]


def measure(bilm: str, texts: dict[str, tuple[list[list[str]], int]]) -> dict[str, Any]:
    """Return what docs/results.md tells of a biLM. texts: as of `read_text`, by their names."""
    model, folder = LanguageModel.load(bilm), find_bilm(bilm)
    files = [folder / WEIGHTS, (softmax_folder(bilm) or folder) / SOFTMAX]
    return {
        "weights": sha256_of(folder / WEIGHTS)[:12],
        "parameters": model.bilm.options.n_parameters,
        "bytes": {file.name: file.stat().st_size for file in files},
        "perplexities": {name: perplexity(model, *text) for name, text in texts.items()},
        "tags": tag_accuracies(bilm),
    }


def main(
    bilms: Annotated[list[str], typer.Argument(help="Names of biLMs, or folders")],
    wikipedia: Annotated[Path, typer.Option(help="The held-out text of Wikipedia")],
    novels: Annotated[Path, typer.Option(help="The held-out text of novels")],
) -> None:
    """Put a record for each of BILMS into results/bilms.json."""
    texts = {"wikipedia": read_text(wikipedia), "novels": read_text(novels, NOVELS)}
    texts |= {"newswire": read_text(NEWSWIRE), "tweets": read_text(TWEETS)}
    command = shlex.join(["python", "-m", "scripts.bilms.measure", *sys.argv[1:]])
    facts = {"command": command, **origin()}
    for bilm in bilms:
        begin = time.perf_counter()
        result = measure(bilm, texts)
        keep_result("bilms", bilm, {**facts, "minutes": minutes_since(begin), "result": result})


if __name__ == "__main__":
    run_command(main)
