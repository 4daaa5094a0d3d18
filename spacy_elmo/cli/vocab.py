"""`elmo vocab`: the vocabulary of a text."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from tqdm import tqdm

from ..errors import ElmoError
from ..formats.text import refuse_inside
from .console import msg, telling_if_stopped
from .shared import STANDARD_INPUT, STANDARD_OUTPUT, Force, OldLanguage, TextLanguage, check_output, sentences_in

if TYPE_CHECKING:
    from ..pretraining.text import Report


def vocab(
    text: Annotated[
        Path,
        typer.Argument(
            metavar="TEXT",
            help="Text, one sentence a line (plain, .gz, .xz, .zst), .jsonl or .spacy: a file, folder or pattern; "
            "- is standard input",
        ),
    ],
    output_file: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="vocabulary.txt, one word a line; - is standard output, without the counts",
        ),
    ],
    size: Annotated[
        int | None,
        typer.Option(min=3, metavar="N", help="Largest number of words, with <S>, </S> and <UNK>; default: all"),
    ] = None,
    min_count: Annotated[int, typer.Option(min=1, metavar="N", help="How often a word must occur")] = 1,
    lang: TextLanguage = None,
    force: Force = False,
    language: OldLanguage = None,
) -> None:
    """Count the words of a text, the most frequent first.

    <S>, </S> and <UNK> come first. The counts are written to another file: OUT with .counts.npy instead of .txt. If
    OUT is -, the words alone go to standard output, and what is told goes to standard error.
    """
    from ..pretraining.text import Report
    from ..pretraining.vocabulary import SPECIAL, Vocabulary, count_words, counts_path

    report = Report()
    streamed = output_file == STANDARD_OUTPUT
    for path_of in (Path, counts_path) if not streamed else ():  # in this order: a path like "/" has no counts
        if text != STANDARD_INPUT:
            refuse_inside(text, path_of(output_file))
        check_output(path_of(output_file), force=force)
    stopped = f"stopped. {output_file} was not written. If there was a file of that name before, it is unchanged."
    try:
        with telling_if_stopped(stopped):
            sentences = sentences_in(text, lang or language, report)
            counted = count_words(tqdm(sentences, unit=" sentences", leave=False, disable=None if sys.stderr else True))
            vocabulary = Vocabulary.from_counts(counted, size, min_count)
            if not streamed:
                vocabulary.write(output_file)
    except ElmoError:
        with redirect_stdout(sys.stderr):
            _show_bad(report)
        raise
    if streamed:
        _print_utf8("".join(f"{word}\n" for word in vocabulary.words))
    with redirect_stdout(sys.stderr) if streamed else nullcontext():
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
        _show_bad(report)
    if not streamed:
        msg.good(f"{output_file}: {len(vocabulary):,} words")


def _show_bad(report: Report) -> None:
    """Print the lines that were left out, with the reasons."""
    if not report.n_bad:
        return
    msg.warn(f"{report.n_bad:,} bad lines were left out")
    for line in report.bad:
        typer.echo(f"  {line}")
    if report.n_bad > len(report.bad):
        typer.echo(f"  and {report.n_bad - len(report.bad):,} more")


def _print_utf8(text: str) -> None:
    """Print a text in UTF-8, as it would be in a file, whatever the encoding of standard output."""
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
    else:  # a program has put a StringIO there
        sys.stdout.write(text)
