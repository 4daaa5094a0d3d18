"""`elmo similar`: the occurrences of a word that are most alike in context."""

from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import typer
from spacy.cli._util import import_code

from ..errors import CommandError, listed
from ..formats.text import Unusable
from ..modules.loading import EMBEDDED, can_name_bilm
from .console import msg, print_json, quoted
from .shared import WIDEST, Code, Json, PipeName, TextLanguage, bilm_of, embedder_of, source_of

Floats = npt.NDArray[np.float32]
BATCH = 64  # lines
_SIDE = 36  # characters shown on each side of the word
_DOTS = "..."
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # parts of words in Persian and Hindi, and of emoji


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
    import_code(code)
    if text is None:
        name = quoted(Path(model))
        given = (name, "TEXT") if can_name_bilm(model) else (EMBEDDED, name)
        raise CommandError(
            f"{model}: the only argument. Expected two, the model and the text: python -m spacy elmo similar "
            f"{given[0]} {given[1]} --word WORD."
        )
    if Path(model).is_file() and can_name_bilm(text):
        raise CommandError(
            f"{model}: a file, given as the model, and {text} as the text. Expected the model first: python -m "
            f"spacy elmo similar {text} {model} --word WORD."
        )
    occurrences = find_occurrences(model, pipe, text, word, ignore_case, lang)
    query = occurrences.pop(_query(occurrences, sentence, f"{source_of(text)}: --sentence is {sentence}", word))
    layers = _ranked(query, occurrences, top)
    if as_json:
        found = [
            {"layer": layer, "occurrences": [{"cosine": cosine} | other.to_dict() for cosine, other in results]}
            for layer, results in layers.items()
        ]
        print_json({"query": query.to_dict(), "others": len(occurrences), "layers": found})
        return
    msg.text(f"line {query.line}: {marked(query.words, query.place)}")
    n = len(occurrences)
    msg.text(f"compared with {n:,} other occurrence{'s' * (n > 1)}, by the cosine of their vectors")
    if 0 not in layers:
        msg.text("layer 0 is left out: it sees the word alone, so it is the same for all occurrences")
    for layer, results in layers.items():
        msg.divider(f"layer {layer}")
        rows = [(f"{cosine:.3f}", other.line, marked(other.words, other.place)) for cosine, other in results]
        header = ("cosine", "line", "sentence")
        msg.table(rows, header=header, divider=True, aligns=("r", "r", "l"), max_col=WIDEST)


class Occurrence(NamedTuple):
    """A word in its line.

    line: number of the line, from 1.
    words: of the line.
    place: index of the word in the line.
    layers: *Shape:* (layers, width), its vectors.
    """

    line: int
    words: list[str]
    place: int
    layers: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return word, line, place and sentence as a dict that can be written as JSON."""
        word, sentence = self.words[self.place], " ".join(self.words)
        return {"word": word, "line": self.line, "place": self.place, "sentence": sentence}


def find_occurrences(
    model: str, pipe: str | None, text: Path, word: str, ignore_case: bool, lang: str | None
) -> list[Occurrence]:
    """Return all occurrences of a word in a text, in order. Only lines that have one are embedded.

    Raises ElmoError if the model or the text can't be read, or if there are fewer than two occurrences.
    """
    from ..corpus.reading import Parser, read_items, sources_of

    choice = bilm_of(model, pipe)
    if lang is not None and choice.saved_pipeline is not None:
        raise CommandError(
            f"--lang is {lang!r}, and {model} is a saved pipeline, which splits text with its own tokenizer. "
            "Expected --lang only with a biLM: leave it out."
        )
    at_blanks = lang is None and choice.saved_pipeline is None
    parser = Parser(None if at_blanks else choice.tokenizer(lang), docs=False)
    files = sources_of([text])
    if len(files) > 1:
        raise CommandError(
            f"{text}: {len(files)} files. Expected one, whose lines have numbers. neighbours reads several."
        )
    wanted = word.lower()
    lines: list[tuple[int, list[str], list[int]]] = []  # number, words, and where the word is among them
    for item in read_items(files):
        try:
            document = parser(item)
        except Unusable as error:
            raise CommandError(f"{item.source}, line {item.line}: {error}. Correct or remove the line.") from error
        for sentence in document.sentences if document is not None else ():
            words = sentence.tokens
            places = [i for i, it in enumerate(words) if it == word or (ignore_case and it.lower() == wanted)]
            if places:
                lines.append((item.line, words, places))
    n = sum(len(places) for *_, places in lines)
    if n < 2:
        how = (
            f"occurs once, in line {lines[0][0]}. Expected two occurrences or more, to compare"
            if n
            else ("does not occur. Expected a token of the text, exactly as it is written there")
        )
        split = " Without --lang, a biLM splits a text at blanks, so a word is one with the punctuation at its end: "
        split += "--lang en splits it with spaCy's English tokenizer."
        raise CommandError(
            f"{source_of(text)}: the word {word!r} {how}: change --word, or add --ignore-case.{split * at_blanks}"
        )
    embedder, found = embedder_of(choice), []
    for start in range(0, len(lines), BATCH):
        batch = lines[start : start + BATCH]
        for (line, words, places), layers in zip(batch, embedder.embed_batch([words for _, words, _ in batch])):
            # a view would hold all words' vectors
            found += [Occurrence(line, words, place, layers[:, place].copy()) for place in places]
    return found


def _query(occurrences: list[Occurrence], line: int | None, told: str, word: str) -> int:
    """Return the number of the occurrence that the others are compared with: the first one, or that in a line."""
    lines = [occurrence.line for occurrence in occurrences]
    if line is None:
        return 0
    if line not in lines:
        raise CommandError(
            f"{told}, but that line has no {word!r}. Expected one of the lines {listed(list(dict.fromkeys(lines)))}."
        )
    return lines.index(line)


def _ranked(query: Occurrence, others: list[Occurrence], top: int) -> dict[int, list[tuple[float, Occurrence]]]:
    """Return the most similar occurrences and their cosines, for each layer in which the occurrences differ."""
    vectors = np.stack([occurrence.layers for occurrence in others])
    order, cosines = most_alike(query.layers, vectors, top)
    # equal words have equal vectors in layer 0, up to rounding
    first = int(np.allclose(vectors[:, 0], query.layers[0], rtol=1e-3, atol=1e-4))
    return {
        layer: [(cosine, others[i]) for i, cosine in zip(order[layer].tolist(), cosines[layer].tolist())]
        for layer in range(first, len(order))
    }


def most_alike(query: Floats, others: Floats, top: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rank vectors by their cosine with a query, for each layer. Equal cosines stay in the order of the vectors.

    query: *Shape:* (layers, width).
    others: *Shape:* (n, layers, width).

    Returns the indices of the vectors and their cosines, each *Shape:* (layers, min(n, top)). The cosine with a vector
    of zeros is 0.
    """
    a, b = query.astype(np.float64), others.astype(np.float64)
    norms = np.linalg.norm(b, axis=2) * np.linalg.norm(a, axis=1)
    dots = np.einsum("nlw,lw->nl", b, a)
    cosines = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0).clip(-1, 1).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top]
    return order, np.take_along_axis(cosines, order, axis=1)


def marked(words: list[str], place: int) -> str:
    """Return a sentence with the word at a place between stars. A long sentence is shortened at both ends."""
    word = words[place]
    before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
    parts = (
        shorten(before[::-1], _SIDE, placeholder=f" {_DOTS}")[::-1],  # reversed, so that the beginning is cut off
        f"*{word if len(word) <= _SIDE else word[:_SIDE] + _DOTS}*",
        shorten(after, _SIDE, placeholder=f" {_DOTS}"),
    )
    text = " ".join(part for part in parts if part)
    # a control character could change how the terminal works
    return "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
