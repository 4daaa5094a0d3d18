"""`elmo init-pretrain-config`: a config that trains a biLM."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..errors import ElmoError
from ..pretraining.config import Paths
from ..pretraining.config_file import to_config, to_text
from ..pretraining.splitting import splitter
from .init_config import STANDARD_OUTPUT, check_output, write
from .paths import given_path
from .pretrain_comments import commented
from .pretrain_sizes import Size, config_of_size

_LATER = "train"  # stands for a path that is not known yet


def config_text(size: Size, train: str | None, heldout: str | None, language: str | None) -> str:
    """A complete config with comments; paths.train is null where it is not given. Raises ElmoError."""
    splitter(language)  # so that a language which spaCy does not know is refused now
    paths = Paths(_LATER if train is None else train, heldout)
    config = to_config(config_of_size(size, paths, language))
    config["paths"]["train"] = train
    return commented(to_text(config))


def init_pretrain_config(
    output_file: Annotated[
        Path, typer.Argument(metavar="OUT", help="The config to write; - is standard output", parser=given_path)
    ],
    train: Annotated[
        str | None, typer.Option(help="Text, one sentence a line: a file, a folder or a pattern", metavar="TEXT")
    ] = None,
    heldout: Annotated[
        str | None, typer.Option(help="Held-out text; left out: cut off from the other", metavar="TEXT")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="spaCy language that tokenises the text; left out: words are split at blanks")
    ] = None,
    size: Annotated[
        Size, typer.Option(help="Of the network; original: its authors' training settings as well")
    ] = Size.mini,
    force: Annotated[bool, typer.Option("--force", help="Replace the file where there is one")] = False,
) -> None:
    """Write a config for spacy elmo pretrain: every setting, with a line on what it does."""
    try:
        if output_file != STANDARD_OUTPUT:
            check_output(output_file, force)
        text = config_text(size, train, heldout, language)
        if output_file == STANDARD_OUTPUT:
            typer.echo(text, nl=False)
            return
        write(text, output_file)
    except (ElmoError, OSError) as error:
        msg.fail(str(error), exits=1)
    msg.good(f"{output_file}: train it with")
    given = "" if train else " --paths.train text.txt"
    typer.echo(f"python -m spacy elmo pretrain {output_file} out{given}")
