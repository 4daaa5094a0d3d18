"""The commands `python -m spacy elmo ...`: a file for each, registered here. No other part of the package calls them.

What costs time is imported where a command needs it, since spaCy loads this module for each of its own commands, too.
"""

from collections.abc import Callable
from typing import Any

import typer
from spacy.cli._util import app as spacy_app

from .compare import CONTEXT as SETTINGS
from .compare import compare
from .console import Commands, with_exit_codes
from .demo import demo
from .download import download
from .embed import embed
from .evaluate import evaluate
from .explore import explore
from .info import info
from .init_config import init_config
from .init_pretrain_config import init_pretrain_config
from .neighbours import neighbours
from .pack import pack
from .package import package
from .predict import predict
from .pretrain import CONTEXT, PretrainCommand, pretrain
from .probe import probe
from .similar import similar
from .version import version
from .vocab import vocab
from .weights import weights
from .wsd import wsd

app = typer.Typer(name="elmo", cls=Commands, help="Deep contextualized word vectors (ELMo).", no_args_is_help=True)
app.callback(invoke_without_command=True)(with_exit_codes(version))


def register(*commands: Callable[..., None], **settings: Any) -> None:
    """Add commands, which help lists in this order. settings: as of `typer.Typer.command`."""
    for command in commands:
        app.command(command.__name__.replace("_", "-"), **settings)(with_exit_codes(command))


# in the order of use: first looks, vectors, components, training of a biLM
register(demo, explore, info, download, embed, similar, predict, neighbours, init_config)
register(compare, context_settings=SETTINGS)
register(weights, init_pretrain_config, vocab)
register(pretrain, context_settings=CONTEXT, cls=PretrainCommand)
register(evaluate, probe, wsd, pack, package)
spacy_app.add_typer(app)
