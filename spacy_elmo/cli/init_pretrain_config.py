"""`elmo init-pretrain-config`: a config that trains a biLM."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..errors import CommandError, Errors
from ..pretraining.settings.config_file import to_config, to_text
from ..pretraining.settings.help import commented
from ..pretraining.settings.sections import PathSettings
from ..pretraining.settings.sizes import Size, config_of_size, tuning_config
from ..pretraining.text.splitting import splitter
from .shared.errors import printing_errors
from .shared.outputs import STANDARD_OUTPUT, refuse_existing, write_text
from .shared.paths import path_argument

_LATER = "train"  # instead of a path that is not known yet


def config_text(
    size: Size | None, train: str | None, heldout: str | None, language: str | None, init: str | None = None
) -> str:
    """Return a complete config with comments.

    size: of the network; None: mini, or that of `init`.
    train: the training text; None: paths.train is null.
    heldout: the held-out text; None: a part of the training text.
    language: of the spaCy tokenizer; None: words are separated by blanks.
    init: a biLM to tune, a folder or en_mini; None: random weights.

    Raises ElmoError if the language is unknown, or if both `size` and `init` are set.
    """
    splitter(language)  # so that a language which spaCy does not know is refused now
    paths = PathSettings(_LATER if train is None else train, heldout, init=init)
    if init is None:
        config = to_config(config_of_size(size or Size.mini, paths, language))
    elif size is None:
        config = to_config(tuning_config(paths, language))
        del config["bilm"]
    else:
        raise CommandError(Errors.INIT_PRETRAIN_SIZE.format(init=init, size=size.value))
    config["paths"]["train"] = train
    return commented(to_text(config))


def init_pretrain_config(
    output_file: Annotated[
        Path, typer.Argument(metavar="OUT", help="The config to write; - is standard output", parser=path_argument)
    ],
    train: Annotated[
        str | None, typer.Option(help="Text, one sentence a line: a file, a folder or a pattern", metavar="TEXT")
    ] = None,
    heldout: Annotated[
        str | None, typer.Option(help="Held-out text; default: a part of the training text", metavar="TEXT")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="spaCy language that tokenises the text; default: words are separated by blanks")
    ] = None,
    size: Annotated[
        Size | None,
        typer.Option(
            help="Of the network; tiny: for a first try or a small text; original: its authors' training settings as "
            "well; left out: mini"
        ),
    ] = None,
    init: Annotated[str | None, typer.Option(help="biLM to tune: its folder, or en_mini", metavar="MODEL")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists")] = False,
) -> None:
    """Write a config for spacy elmo pretrain, with a comment on each setting."""
    with printing_errors():
        if output_file != STANDARD_OUTPUT:
            refuse_existing(output_file, force)
        text = config_text(size, train, heldout, language, init)
        if output_file == STANDARD_OUTPUT:
            typer.echo(text, nl=False)
            return
        write_text(text, output_file)
    msg.good(f"{output_file}: train it with")
    missing = "" if train else " --paths.train TEXT"
    folder = Path("runs") / output_file.stem
    typer.echo(f"python -m spacy elmo pretrain {output_file} {folder}{missing}")
