"""`elmo vocab`: the vocabulary of a text."""

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from spacy.cli._util import Arg, Opt

from ..errors import ElmoError
from ..text.stream import Report, read_sentences
from .console import msg, telling_if_stopped
from .shared import DASH, TEXTS, Force, Lang, TextColumn, TextField, hold, shown_bar, tell_bad_lines


def vocab(
    text: Path = Arg(..., metavar="TEXT", help=TEXTS),
    output_file: Path = Arg(..., metavar="OUT", help="vocabulary.txt, one word a line; - is stdout, without counts"),
    size: int | None = Opt(None, min=3, metavar="N", help="Largest number of words, with <S>, </S> and <UNK>"),
    min_count: int = Opt(1, min=1, metavar="N", help="How often a word must occur"),
    lang: Lang = None,
    text_column: TextColumn = None,
    text_field: TextField = None,
    force: Force = False,
) -> None:
    """Count the words of a text, the most frequent first.

    <S>, </S> and <UNK> come first. The counts are written to another file: OUT with .counts.npy instead of .txt. If
    OUT is -, the words alone go to standard output, and what is told goes to standard error.
    """
    from ..pretraining.vocabulary import SPECIAL, Vocabulary, count_words, counts_path

    report = Report()
    streamed = output_file == DASH
    for path_of in (Path, counts_path) if not streamed else ():  # in this order: a path like "/" has no counts
        begins = b"<S>\n" if path_of is Path else b"\x93NUMPY"
        hold(path_of(output_file), [text], force=force, begins=begins)
    stopped = f"stopped. {output_file} was not written. If there was a file of that name before, it is unchanged."
    with redirect_stdout(sys.stderr) if streamed else nullcontext():
        try:
            with telling_if_stopped(stopped):
                sentences = read_sentences(text, lang, report, text_column=text_column, text_field=text_field)
                with shown_bar(iterable=sentences, unit=" sentences", leave=False) as bar:
                    counted = count_words(bar)
                vocabulary = Vocabulary.from_counts(counted, size, min_count)
                if not streamed:
                    vocabulary.write(output_file)
        except ElmoError:
            tell_bad_lines(report)
            raise
        rows = [
            ("sentences", f"{report.sentences:,}"),
            ("tokens", f"{report.tokens:,}"),
            ("distinct words", f"{len(counted.words):,}"),
            ("vocabulary", f"{len(vocabulary):,}, {', '.join(SPECIAL)} included"),
            ("coverage", f"{vocabulary.coverage:.2%} of the tokens"),
            ("blank lines", f"{report.blank:,}"),
            ("bad lines", f"{report.n_bad:,}"),
        ]
        msg.table(rows, max_col=100)
        tell_bad_lines(report)
    if streamed:  # in UTF-8, as it would be in a file, whatever the encoding of standard output
        sys.stdout.flush()
        sys.stdout.buffer.write("".join(f"{word}\n" for word in vocabulary.words).encode())
    else:
        msg.good(f"{output_file}: {len(vocabulary):,} words")
