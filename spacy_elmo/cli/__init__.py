"""The commands `python -m spacy elmo ...`: a file for each, registered here. No other part of the package calls them.

shared/ has what several commands need, views/ what they show, and task_configs/ the configs that `init-config` writes.
"""

from collections.abc import Callable

import typer
from spacy.cli._util import app as spacy_app

from ..pretraining.config import command_help
from .console import Commands, with_exit_codes
from .demo import demo
from .download import download
from .embed import embed
from .evaluate import evaluate
from .info import info
from .init_config import init_config
from .init_pretrain_config import init_pretrain_config
from .neighbours import CONTEXT as ONE_CORPUS
from .neighbours import neighbours
from .pack import pack
from .pretrain import CONTEXT, pretrain
from .probe import probe
from .similar import similar
from .version import version
from .vocab import vocab
from .weights import weights
from .wsd import wsd

app = typer.Typer(name="elmo", cls=Commands, help="Deep contextualized word vectors (ELMo).", no_args_is_help=True)
app.callback(invoke_without_command=True)(version)


def register(*commands: Callable[..., None]) -> None:
    """Add commands, which help lists in this order."""
    for command in commands:
        app.command(command.__name__.replace("_", "-"))(with_exit_codes(command))


# in the order of use: first looks, vectors, components, training of a biLM
register(demo, info, download, embed, similar)
app.command("neighbours", context_settings=ONE_CORPUS)(with_exit_codes(neighbours))
register(init_config, weights, init_pretrain_config, vocab)
# pretrain handles signals itself (pretraining/checkpoint.py)
app.command("pretrain", context_settings=CONTEXT, epilog=command_help())(pretrain)
register(evaluate, probe, wsd, pack)
spacy_app.add_typer(app)
