"""`elmo similar`: the occurrences of a word that are most alike in context."""

from itertools import groupby
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
from spacy.cli._util import Arg, Opt

from ..errors import CommandError, listed
from ..formats.paths import find_files
from ..formats.vectors import of_length_1
from ..modules.loading import EMBEDDED
from ..text.files import TextFile
from ..text.stream import Report, read_documents
from . import shared
from .console import msg, print_json

_SIDE = 36  # characters shown on each side of the word
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # parts of words in Persian and Hindi, and of emoji


class Occurrence(NamedTuple):
    """A word in its line: the line's number, from 1, its words, and the word's place."""

    line: int
    words: list[str]
    place: int

    def to_dict(self) -> dict[str, Any]:
        """Return word, line, place and sentence as a dict that can be written as JSON."""
        word, sentence = self.words[self.place], " ".join(self.words)
        return {"word": word, "line": self.line, "place": self.place, "sentence": sentence}


def similar(
    text: Path = Arg(..., metavar="TEXT", help="Text: one sentence a line; - is stdin"),
    model: shared.Model = EMBEDDED,
    word: str = Opt(..., metavar="WORD", help="The word, exactly as the text has it"),
    sentence: int | None = Opt(None, min=1, metavar="N", help="Line of the occurrence; default: that of the first"),
    top: int = Opt(5, min=1, metavar="N", help="Occurrences shown for each layer"),
    ignore_case: bool = Opt(False, "--ignore-case", help="Accept the word in upper and lower case"),
    lang: shared.LangOfCard = None,
    tokenized: shared.Tokenized = False,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    pipe: shared.PipeName = None,
    code: shared.Code = None,
    as_json: shared.Json = False,
) -> None:
    """One occurrence, the first or that in line --sentence, is compared with all others, layer by layer."""
    choice = shared.bilm_of(model, pipe, code)
    if text != shared.DASH and len(files := find_files(text)) > 1:
        raise CommandError(f"{text}: {len(files)} files. Expected one: neighbours reads several.")
    language = shared.language_of(choice, lang, tokenized)
    tokenizer = choice.tokenizer(lang) if language is not None else None
    report, others = Report(), list[Occurrence]()
    for document in read_documents(text, tokenizer, report, text_column=text_column, text_field=text_field):
        for words in document.sentences:
            places = [i for i, it in enumerate(words) if it == word or (ignore_case and it.lower() == word.lower())]
            others += [Occurrence(document.line, words, place) for place in places]
    lines = [one.line for one in others]
    if len(lines) < 2:
        how = f"occurs once, in line {lines[0]}" if lines else "does not occur"
        split = "spaCy's tokenizer split the text, which divides well-known: --tokenized splits it at blanks."
        if tokenized:
            split = "The text was split at blanks, so a word has the punctuation after it: leave out --tokenized."
        shared.tell_bad_lines(report)
        raise CommandError(
            f"{TextFile(text, True).name}: the word {word!r} {how}. Expected two occurrences or more, exactly as it is "
            f"written: change --word, or add --ignore-case. {split}"
        )
    if sentence is not None and sentence not in lines:
        expected = f"Expected one of the lines {listed(list(dict.fromkeys(lines)))}"
        raise CommandError(f"{text}: --sentence is {sentence}, but that line has no {word!r}. {expected}.")
    groups = [list(group) for _, group in groupby(others, lambda one: id(one.words))]  # a line is embedded once
    embedded = shared.embedded(choice.load(), (group[0].words for group in groups))
    vectors = np.stack([layers[:, one.place].copy() for group, layers in zip(groups, embedded) for one in group])
    asked = 0 if sentence is None else lines.index(sentence)
    query, of_query = others.pop(asked), vectors[asked].astype(np.float64)
    vectors = np.delete(vectors, asked, axis=0)
    cosines = np.einsum("nlw,lw->ln", of_length_1(vectors.astype(np.float64)), of_length_1(of_query)).clip(-1, 1)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top]
    # equal words have equal vectors in layer 0, up to rounding
    first = int(np.allclose(vectors[:, 0], of_query[0], rtol=1e-3, atol=1e-4))
    layers = {
        layer: [(float(cosines[layer, i]), others[i]) for i in order[layer].tolist()]
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
    shared.tell_bad_lines(report)
    msg.text(f"line {query.line}: {marked(query.words, query.place)}")
    n = len(others)
    msg.text(f"compared with {n:,} other occurrence{'s' * (n > 1)}, by the cosine of their vectors")
    if first:
        msg.text("layer 0 is left out: it sees the word alone, so it is the same for all occurrences")
    for layer, results in layers.items():
        msg.divider(f"layer {layer}")
        rows = [(f"{cosine:.3f}", other.line, marked(other.words, other.place)) for cosine, other in results]
        msg.table(rows, header=("cosine", "line", "sentence"), aligns="rrl")


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
