"""`elmo vocab`: the vocabulary of a text."""

import sys
from pathlib import Path

from spacy.cli._util import Arg, Opt

from ..errors import ElmoError
from ..pretraining.vocabulary import SPECIAL, Vocabulary, count_words, counts_path
from ..text.stream import Report, read_sentences
from . import shared
from .console import msg, to_stderr


def vocab(
    text: Path = Arg(..., metavar="TEXT", help=shared.TEXTS),
    output_file: Path = Arg(..., metavar="OUT", help="vocabulary.txt, one word a line; - is stdout, without counts"),
    size: int | None = Opt(None, min=3, metavar="N", help="Largest number of words, with <S>, </S> and <UNK>"),
    min_count: int = Opt(1, min=1, metavar="N", help="How often a word must occur"),
    lang: shared.Lang = None,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    force: shared.Force = False,
) -> None:
    """<S>, </S> and <UNK> come first. The counts are written to another file: OUT with .counts.npy instead of .txt. If
    OUT is -, the words alone go to standard output, and what is told goes to standard error.
    """
    report, streamed = Report(), output_file == shared.DASH
    if not streamed:
        shared.hold(output_file, [text], force=force, begins=b"<S>\n")
        shared.hold(counts_path(output_file), [text], force=force, begins=b"\x93NUMPY")
    with to_stderr(streamed):
        try:
            sentences = read_sentences(text, lang, report, text_column=text_column, text_field=text_field)
            with shared.shown_bar(iterable=sentences, unit=" sentences", leave=False) as bar:
                counted = count_words(bar)
            vocabulary = Vocabulary.from_counts(counted, size, min_count)
            if not streamed:
                vocabulary.write(output_file)
        except ElmoError:
            shared.tell_bad_lines(report)
            raise
        rows = [
            ("sentences", f"{report.sentences:,}"),
            ("tokens", f"{report.tokens:,}"),
            ("distinct words", f"{len(counted.words):,}"),
            ("vocabulary", f"{len(vocabulary):,}, {', '.join(SPECIAL)} included"),
            ("coverage", f"{vocabulary.coverage:.2%} of the tokens"),
            ("blank lines", f"{report.blank:,}"),
        ]
        msg.table(rows)
        shared.tell_bad_lines(report)
    if streamed:  # in UTF-8, as it would be in a file, whatever the encoding of standard output
        sys.stdout.flush()
        sys.stdout.buffer.write("".join(f"{word}\n" for word in vocabulary.words).encode())
    else:
        msg.good(f"{output_file}: {len(vocabulary):,} words")
