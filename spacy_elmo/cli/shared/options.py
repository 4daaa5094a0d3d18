"""Options that several commands have, with the names that spaCy's own commands give them."""

from pathlib import Path
from typing import Annotated

import typer

Force = Annotated[bool, typer.Option("--force", "-F", help="Replace what exists")]
Json = Annotated[bool, typer.Option("--json", "-j", help="Print JSON only")]
Code = Annotated[
    Path | None,
    typer.Option("--code", "-c", metavar="FILE", help="Python file with functions that a saved pipeline needs"),
]
TextLanguage = Annotated[
    str | None,
    typer.Option(
        "--lang",
        "-l",
        metavar="CODE",
        help="spaCy language that tokenises the text; default: words are separated by blanks",
    ),
]
OldLanguage = Annotated[str | None, typer.Option("--language", hidden=True)]  # what --lang was called before
PipeName = Annotated[
    str | None, typer.Option("--pipe", metavar="NAME", help="Name of the elmo pipe if the pipeline has several")
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Folder of a biLM or of a pretraining run, saved pipeline (folder or package), or the name of a biLM",
    ),
]
