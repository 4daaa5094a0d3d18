"""`elmo demo`: how the layers represent words with several senses."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import spacy
import typer

from ..errors import CommandError, Errors
from ..formats.hdf5_vectors import VectorsWriter
from .shared.errors import printing_errors
from .shared.printer import msg
from .views.senses_plot import SampleWord, plot_senses, similarities


def make_folder(path: Path) -> None:
    """Make a folder, unless it is there. Raises CommandError if it can't be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(Errors.DEMO_FOLDER.format(path=path, reason=error.strerror)) from error


def embed_sample(vectors: Path) -> list[SampleWord]:
    """Embed the package's example sentences with the embedded biLM, and write all their layers to `vectors`."""
    lines = (files("spacy_elmo.cli") / "senses.tsv").read_text(encoding="utf8").splitlines()
    table = [line.split("\t") for line in lines]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    occurrences = []
    with VectorsWriter(vectors) as writer:
        for (word, sense, sentence), doc in zip(table, nlp.pipe([row[2] for row in table])):
            writer.write(" ".join(token.text for token in doc), doc._.elmo_layers)
            token = next(token for token in doc if token.lower_ == word)
            occurrences.append(SampleWord(word, sense, sentence, token._.elmo_layers))
    return occurrences


def demo(
    output: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for vectors.hdf5 and senses.png", file_okay=False)
    ] = Path("out"),
) -> None:
    """Embed sample sentences, and compare layers.

    The sentences have words of several senses. A table shows how well each layer separates the senses.
    """
    with printing_errors():
        make_folder(output)
        occurrences = embed_sample(output / "vectors.hdf5")
    layers, width = occurrences[0].layers.shape
    msg.text(f"{len(occurrences)} sentences; each token has {layers} layers of {width} numbers, and as")
    msg.text(f"token._.elmo their mean: a vector of {width}. For example:")
    for occurrence in occurrences[:5:4]:
        numbers = " ".join(f"{value:+.2f}" for value in occurrence.layers.mean(0)[:6])
        msg.text(f"  {occurrence.word} ({occurrence.sense})  [{numbers} ...]  {occurrence.sentence}")
    words = list(dict.fromkeys(occurrence.word for occurrence in occurrences))
    rows = []
    for word in [*words, "all"]:
        same, different = similarities([o for o in occurrences if word in (o.word, "all")])
        rows.append((word, *(f"{s:.2f} / {d:.2f}" for s, d in zip(same, different))))
    msg.divider("cosine similarity of a word's occurrences: same sense / different senses")
    header = ("word", "layer 0 (characters)", *(f"layer {k}" for k in range(1, layers)))
    msg.table(rows, header=header, divider=True, aligns=("l", *["c"] * layers))
    msg.text("Layer 0 sees the word alone: all its occurrences are equal. The layers above see the sentence:")
    msg.text("the further the first number is above the second, the better a layer tells that word's senses apart.")
    msg.good(f"{output / 'vectors.hdf5'}: all layers of all tokens")
    with printing_errors():
        drawn = plot_senses(occurrences, output / "senses.png")
    if drawn:
        msg.good(f"{output / 'senses.png'}: the picture of it")
    else:
        msg.warn("no picture: matplotlib is missing (pip install matplotlib)")
