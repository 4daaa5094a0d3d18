"""`elmo vocab`: the vocabulary of a text."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from ..errors import ElmoError
from ..formats.text import refuse_inside
from ..pretraining.text import Report
from ..pretraining.vocabulary import SPECIAL, Vocabulary, WordCounts, count_words, counts_path
from .console import escaped, msg, print_error, print_utf8, show_all
from .shared import STANDARD_INPUT, STANDARD_OUTPUT, Force, OldLanguage, TextLanguage, refuse_existing, sentences_in


def show(report: Report, counted: WordCounts, vocabulary: Vocabulary) -> None:
    """Print counts of the text and the vocabulary's coverage of it."""
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


def show_bad(report: Report) -> None:
    """Print the lines that were left out, with the reasons."""
    if not report.n_bad:
        return
    msg.warn(f"{report.n_bad:,} bad lines were left out")
    for line in report.bad:
        typer.echo(f"  {line}")
    if report.n_bad > len(report.bad):
        typer.echo(f"  and {report.n_bad - len(report.bad):,} more")


def check_target(path: Path, text: Path, force: bool) -> None:
    """Raise ElmoError if a file is part of the text, or exists and `force` is false."""
    if text != STANDARD_INPUT:
        refuse_inside(text, path)
    refuse_existing(path, force)


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
        typer.Option(
            min=len(SPECIAL), metavar="N", help="Largest number of words, with <S>, </S> and <UNK>; default: all"
        ),
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
    show_all()
    report = Report()
    streamed = output_file == STANDARD_OUTPUT
    try:
        if not streamed:
            check_target(output_file, text, force)  # first, since a path like "/" has no counts_path
            check_target(counts_path(output_file), text, force)
        sentences = sentences_in(text, lang or language, report)
        counted = count_words(tqdm(sentences, unit=" sentences", leave=False, disable=None if sys.stderr else True))
        vocabulary = Vocabulary.from_counts(counted, size, min_count)
        if not streamed:
            vocabulary.write(output_file)
    except (ElmoError, OSError) as error:
        with redirect_stdout(sys.stderr):
            show_bad(report)
        print_error(str(error), exits=1)
    except KeyboardInterrupt:
        print_error(
            f"stopped. {output_file} was not written. If there was a file of that name before, it is unchanged."
        )
        raise
    if streamed:
        print_utf8("".join(f"{word}\n" for word in vocabulary.words))
        with redirect_stdout(sys.stderr):
            show(report, counted, vocabulary)
            show_bad(report)
        return
    show(report, counted, vocabulary)
    show_bad(report)
    msg.good(escaped(f"{output_file}: {len(vocabulary):,} words"))
