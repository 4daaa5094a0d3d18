"""`elmo similar`: the occurrences of a word that are most alike in context."""

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from spacy.cli._util import import_code

from ..errors import CommandError, listed
from ..formats.text import PACKED, read_lines
from ..modules.loading import EMBEDDED, can_name_bilm
from ..pipeline.saved import is_pipeline
from .console import escaped, msg, print_json, printing_errors, quoted, show_all
from .occurrences import Occurrence, find_occurrences, reader_of
from .shared import Code, Json, PipeName, TextLanguage, open_text, source_of

Floats = npt.NDArray[np.float32]


def most_alike(query: Floats, others: Floats, top: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rank vectors by their cosine with a query, for each layer. Equal cosines stay in the order of the vectors.

    query: *Shape:* (layers, width).
    others: *Shape:* (n, layers, width).
    top: largest number of results.

    Returns the indices of the vectors and their cosines, each *Shape:* (layers, min(n, top)). The cosine with a vector
    of zeros is 0.
    """
    a, b = query.astype(np.float64), others.astype(np.float64)
    norms = np.linalg.norm(b, axis=2) * np.linalg.norm(a, axis=1)
    dots = np.einsum("nlw,lw->nl", b, a)
    cosines = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0).clip(-1, 1).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top]
    return order, np.take_along_axis(cosines, order, axis=1)


WIDEST = 120  # characters of a column
_OTHER_KINDS = (".jsonl", ".conllu", ".spacy")


def read_occurrences(
    model: str, pipe: str | None, text: Path, word: str, ignore_case: bool, lang: str | None
) -> list[Occurrence]:
    """Return all occurrences of a word in a text, in order.

    model: saved pipeline, folder of a biLM, or the name of a biLM.
    pipe: name of the elmo pipe if the pipeline has several.
    text: one sentence a line; - is standard input.
    word: as it is in the text.
    ignore_case: whether upper and lower case count as equal.
    lang: language of the tokenizer that splits the text for a biLM; None: it is split at blanks.

    Raises ElmoError if the model or the text can't be read, if the text's name is that of another kind of file, or if
    there are fewer than two occurrences.
    """
    if Path(model).is_file() and can_name_bilm(text):
        raise CommandError(
            f"{model}: a file, given as the model, and {text} as the text. Expected the model first: python -m "
            f"spacy elmo similar {text} {model} --word WORD."
        )
    if text.suffix in PACKED or text.suffix in _OTHER_KINDS:
        raise CommandError(
            f"{text}: not plain text, by its name. Expected text that is not packed, one sentence a line: convert "
            "the file, or use python -m spacy elmo neighbours, which also reads .jsonl, .spacy and packed files."
        )
    wanted = word.lower()
    source = source_of(text)
    with open_text(text) as file:
        occurrences = list(
            find_occurrences(
                read_lines(file, source),
                reader_of(model, pipe, lang),
                lambda other: other == word or (ignore_case and other.lower() == wanted),
                source,
            )
        )
    split = (
        ""
        if lang or is_pipeline(model)
        else (
            " Without --lang, a biLM splits a text at blanks, so a word is one with the punctuation at its end: "
            "--lang en splits it with spaCy's English tokenizer."
        )
    )
    if not occurrences:
        raise CommandError(
            f"{source}: the word {word!r} does not occur. Expected a token of the text, exactly as it is written "
            f"there: change --word, or add --ignore-case.{split}"
        )
    if len(occurrences) == 1:
        raise CommandError(
            f"{source}: the word {word!r} occurs once, in line {occurrences[0].line}. Expected two occurrences or "
            f"more, to compare: change --word, add --ignore-case, or give more text.{split}"
        )
    return occurrences


def choose_query(occurrences: list[Occurrence], line: int | None, source: str, word: str) -> int:
    """Return the number of the occurrence that the others are compared with.

    occurrences: all of them, in order.
    line: number of its line, from 1; None: the first occurrence.
    source: name of the text in messages.
    word: for messages.

    Raises CommandError if the line has no occurrence.
    """
    if line is None:
        return 0
    for i, occurrence in enumerate(occurrences):
        if occurrence.line == line:
            return i
    lines = list(dict.fromkeys(occurrence.line for occurrence in occurrences))
    raise CommandError(
        f"{source}: --sentence is {line}, but that line has no {word!r}. Expected one of the lines {listed(lines)}."
    )


def ranked(query: Occurrence, others: list[Occurrence], top: int) -> dict[int, list[tuple[float, Occurrence]]]:
    """Return the most similar occurrences and their cosines, for each layer in which the occurrences differ.

    query: the occurrence that the others are compared with.
    others: the others.
    top: results of a layer, at most.
    """
    vectors = np.stack([occurrence.layers for occurrence in others])
    order, cosines = most_alike(query.layers, vectors, top)
    # Equal words have equal vectors in layer 0, up to rounding.
    first = int(np.allclose(vectors[:, 0], query.layers[0], rtol=1e-3, atol=1e-4))
    return {
        layer: [(cosine, others[i]) for i, cosine in zip(order[layer].tolist(), cosines[layer].tolist())]
        for layer in range(first, len(order))
    }


def show(query: Occurrence, n: int, layers: dict[int, list[tuple[float, Occurrence]]]) -> None:
    """Print a table for each layer. n: number of occurrences that were compared."""
    msg.text(escaped(f"line {query.line}: {query.marked()}"))
    msg.text(f"compared with {n:,} other occurrence{'s' * (n > 1)}, by the cosine of their vectors")
    if 0 not in layers:
        msg.text("layer 0 is left out: it sees the word alone, so it is the same for all occurrences")
    for layer, results in layers.items():
        msg.divider(f"layer {layer}")
        rows = [(f"{cosine:.3f}", other.line, escaped(other.marked())) for cosine, other in results]
        header = ("cosine", "line", "sentence")
        msg.table(rows, header=header, divider=True, aligns=("r", "r", "l"), max_col=WIDEST)


def as_dict(query: Occurrence, n: int, layers: dict[int, list[tuple[float, Occurrence]]]) -> dict[str, object]:
    """Return the result as a dict that can be written as JSON. n: number of occurrences that were compared."""
    return {
        "query": query.to_dict(),
        "others": n,
        "layers": [
            {"layer": layer, "occurrences": [{"cosine": cosine} | other.to_dict() for cosine, other in results]}
            for layer, results in layers.items()
        ],
    }


def similar(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Saved pipeline (folder or package), folder of a biLM or of a pretraining run, or the name of a biLM",
        ),
    ],
    text: Annotated[
        Path | None,
        typer.Argument(
            metavar="TEXT",
            help="Text: one sentence a line; - is stdin",
            show_default=False,
        ),
    ] = None,
    *,
    word: Annotated[str, typer.Option(metavar="WORD", help="The word, exactly as the text has it")],
    sentence: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Line of the occurrence to compare with; default: that of the first"),
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Occurrences shown for each layer")] = 5,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", help="Accept the word in upper and lower case")] = False,
    lang: TextLanguage = None,
    pipe: PipeName = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Find occurrences of a word in similar contexts.

    One occurrence, the first or that in line --sentence, is compared with all others, layer by layer.
    """
    show_all()
    import_code(code)
    with printing_errors():
        if text is None:
            name = quoted(Path(model))
            given = (name, "TEXT") if can_name_bilm(model) else (EMBEDDED, name)
            raise CommandError(
                f"{model}: the only argument. Expected two, the model and the text: python -m spacy elmo similar "
                f"{given[0]} {given[1]} --word WORD."
            )
        occurrences = read_occurrences(model, pipe, text, word, ignore_case, lang)
        query = occurrences.pop(choose_query(occurrences, sentence, source_of(text), word))
    layers = ranked(query, occurrences, top)
    if as_json:
        print_json(as_dict(query, len(occurrences), layers))
    else:
        show(query, len(occurrences), layers)
