"""`elmo similar`: the occurrences of a word that are most alike in context."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.cli._util import Arg, Opt, import_code

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError, listed
from ..formats.paths import find_files
from ..modules.loading import EMBEDDED
from ..text.files import TextFile
from ..text.stream import Fields, Report, read_documents
from .console import msg, print_json
from .shared import (
    DASH,
    MODEL,
    WIDEST,
    Code,
    Json,
    LangOfCard,
    PipeName,
    TextColumn,
    TextField,
    Tokenized,
    bilm_of,
    embedder_of,
    language_of,
    tell_bad_lines,
)

Floats = npt.NDArray[np.float32]
_SIDE = 36  # characters shown on each side of the word
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # parts of words in Persian and Hindi, and of emoji


class Occurrence(NamedTuple):
    """A word in its line: the line's number, from 1, its words, the word's place, and its layers (layers, width)."""

    line: int
    words: list[str]
    place: int
    layers: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return word, line, place and sentence as a dict that can be written as JSON."""
        word, sentence = self.words[self.place], " ".join(self.words)
        return {"word": word, "line": self.line, "place": self.place, "sentence": sentence}


def similar(
    texts: list[str] = Arg(..., metavar="TEXT", help="Text: one sentence a line; - is stdin"),
    model: str | None = Opt(None, "--model", "-m", metavar="MODEL", help=f"{MODEL}; default: {EMBEDDED}"),
    word: str = Opt(..., metavar="WORD", help="The word, exactly as the text has it"),
    sentence: int | None = Opt(None, min=1, metavar="N", help="Line of the occurrence; default: that of the first"),
    top: int = Opt(5, min=1, metavar="N", help="Occurrences shown for each layer"),
    ignore_case: bool = Opt(False, "--ignore-case", help="Accept the word in upper and lower case"),
    lang: LangOfCard = None,
    tokenized: Tokenized = False,
    text_column: TextColumn = None,
    text_field: TextField = None,
    pipe: PipeName = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Find occurrences of a word in similar contexts.

    One occurrence, the first or that in line --sentence, is compared with all others, layer by layer.
    """
    import_code(code)
    *before, name = texts  # formerly the model was the first argument
    if len(before) + (model is not None) > 1:
        raise CommandError(f"TEXT was given as {' '.join(texts)}. Expected one file; --model names the model.")
    choice, text = bilm_of(model or (before or [EMBEDDED])[0], pipe), Path(name)
    fields: Fields = {"text_column": text_column, "text_field": text_field}
    report = Report()
    others = list(_occurrences(choice, text, word, ignore_case, lang, tokenized, fields, report))
    lines = [one.line for one in others]
    if sentence is not None and sentence not in lines:
        raise CommandError(
            f"{TextFile(text, True).name}: --sentence is {sentence}, but that line has no {word!r}. Expected one of "
            f"the lines {listed(list(dict.fromkeys(lines)))}."
        )
    query = others.pop(0 if sentence is None else lines.index(sentence))
    vectors = np.stack([one.layers for one in others])
    order, cosines = most_alike(query.layers, vectors, top)
    # equal words have equal vectors in layer 0, up to rounding
    first = int(np.allclose(vectors[:, 0], query.layers[0], rtol=1e-3, atol=1e-4))
    layers = {
        layer: [(cosine, others[i]) for i, cosine in zip(order[layer].tolist(), cosines[layer].tolist())]
        for layer in range(first, len(order))
    }
    if as_json:
        found = [
            {"layer": layer, "occurrences": [{"cosine": cosine} | other.to_dict() for cosine, other in results]}
            for layer, results in layers.items()
        ]
        counts = {"others": len(others), "bad_lines": report.n_bad}
        print_json({"query": query.to_dict(), **counts, "layers": found})
        return
    tell_bad_lines(report)
    msg.text(f"line {query.line}: {marked(query.words, query.place)}")
    n = len(others)
    msg.text(f"compared with {n:,} other occurrence{'s' * (n > 1)}, by the cosine of their vectors")
    if first:
        msg.text("layer 0 is left out: it sees the word alone, so it is the same for all occurrences")
    for layer, results in layers.items():
        msg.divider(f"layer {layer}")
        rows = [(f"{cosine:.3f}", other.line, marked(other.words, other.place)) for cosine, other in results]
        header = ("cosine", "line", "sentence")
        msg.table(rows, header=header, divider=True, aligns=("r", "r", "l"), max_col=WIDEST)


def _occurrences(
    choice: BiLMChoice,
    text: Path,
    word: str,
    ignore_case: bool,
    lang: str | None,
    tokenized: bool,
    fields: Fields,
    report: Report,
) -> Iterator[Occurrence]:
    """Yield all occurrences of a word in a text, in order. Only lines that have one are embedded."""
    if text != DASH and len(files := find_files(text)) > 1:
        raise CommandError(
            f"{text}: {len(files)} files. Expected one, whose lines have numbers. neighbours reads several."
        )
    language = language_of(choice, lang, tokenized)
    tokenizer = choice.tokenizer(lang) if language is not None else None
    lines: list[tuple[int, list[str], list[int]]] = []  # number, words, and where the word is among them
    for document in read_documents(text, tokenizer, report, **fields):
        for words in (sentence.tokens for sentence in document.sentences):
            places = [i for i, it in enumerate(words) if it == word or (ignore_case and it.lower() == word.lower())]
            if places:
                lines.append((document.line, words, places))
    n = sum(len(places) for *_, places in lines)
    if n < 2:
        how = f"occurs once, in line {lines[0][0]}" if n else "does not occur"
        split = " spaCy's tokenizer split the text, which divides well-known: --tokenized splits it at blanks."
        if tokenized:
            split = " The text was split at blanks, so a word has the punctuation after it: leave out --tokenized."
        raise CommandError(
            f"{TextFile(text, True).name}: the word {word!r} {how}. Expected two occurrences or more, exactly as it is "
            f"written: change --word, or add --ignore-case.{split}"
            + (f" {report.n_bad:,} bad lines were left out ({report.bad[0]})." if report.bad else "")
        )
    embedded = embedder_of(choice).embed_sentences(words for _, words, _ in lines)
    for (line, words, places), layers in zip(lines, embedded):
        # a view would hold all words' vectors
        yield from (Occurrence(line, words, place, layers[:, place].copy()) for place in places)


def most_alike(query: Floats, others: Floats, top: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rank vectors, *Shape:* (n, layers, width), by their cosine with a query, (layers, width), in each layer.

    Returns indices and cosines, each *Shape:* (layers, min(n, top)). The cosine with a vector of zeros is 0.
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
        shorten(before[::-1], _SIDE, placeholder=" ...")[::-1],  # reversed, so that the beginning is cut off
        f"*{word if len(word) <= _SIDE else f'{word[:_SIDE]}...'}*",
        shorten(after, _SIDE, placeholder=" ..."),
    )
    text = " ".join(part for part in parts if part)
    # a control character could change how the terminal works
    return "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
