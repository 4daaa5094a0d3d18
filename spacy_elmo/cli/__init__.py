"""The commands `python -m spacy elmo ...`: a file for each, which is read when the command is called.

spaCy loads this module for each of its own commands, too. No other part of the package calls them.
"""

from importlib import import_module
from inspect import getdoc
from itertools import pairwise
from typing import Any

import typer
from spacy.cli._util import app as spacy_app
from typer.core import TyperCommand, TyperGroup

from .console import with_exit_codes
from .version import version

# in the order of use: first looks, vectors, components, training of a biLM; and the first line of each one's help
COMMANDS = {
    "demo": "Embed sample sentences, and compare layers.",
    "explore": "Write a page that shows words in context.",
    "info": "Show what files hold, or what is wrong with them.",
    "download": "Download a published biLM, or a file.",
    "embed": "Write the vectors of texts.",
    "similar": "Find occurrences of a word in similar contexts.",
    "predict": "Show which words the biLM expects at each place.",
    "neighbours": "Find the words of a corpus nearest to one of yours.",
    "init-config": "Write a config for spacy train with ELMo.",
    "compare": "Train with ELMo and without it, and compare.",
    "weights": "Show how each component mixes the biLM's layers.",
    "init-pretrain-config": "Write a config for spacy elmo pretrain.",
    "vocab": "Count the words of a text, the most frequent first.",
    "pretrain": "Train a biLM on text, or resume a stopped run.",
    "evaluate": "Measure the perplexity of a text.",
    "probe": "Measure what each layer tells a linear classifier.",
    "wsd": "Measure how well each layer tells word senses apart.",
    "pack": "Write a smaller copy of a biLM.",
    "package": "Make a Python package of a biLM.",
}


def load(name: str) -> Any:
    """Return a command, ready to be called. SETTINGS in its file are those of `typer.Typer.command`.

    The docstring of its function is the rest of its help.
    """
    title = name.replace("-", "_")
    module = import_module(f"{__name__}.{title}")
    command, alone = getattr(module, title), typer.Typer(add_completion=False)
    told = f"{COMMANDS[name]}\n\n{getdoc(command) or ''}"
    alone.command(help=told, **getattr(module, "SETTINGS", {}))(with_exit_codes(command))
    return typer.main.get_command(alone)


class Commands(TyperGroup):
    """The commands, of which only the one that is called is loaded."""

    def __init__(self, **settings: Any) -> None:
        commands = {name: TyperCommand(name, help=told) for name, told in COMMANDS.items()}
        super().__init__(**settings | {"commands": commands})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty arguments, such as that of a shell's variable that is not set."""
        for before, arg in pairwise(["", *args]):
            option, equals, value = arg.partition("=") if arg.startswith("--") else (before, "=", arg)
            # an empty path would be the current folder; a setting of a config may be empty: --paths.init ""
            is_setting = option.startswith("--") and "." in option and "=" not in option
            if equals and not value and not is_setting:
                expected = "Expected a name or a text; a dot means the current folder"
                raise typer.BadParameter(f"an empty argument after {option!r}. {expected}.")
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load(str(name)), rest


app = typer.Typer(name="elmo", cls=Commands, help="Deep contextualized word vectors (ELMo).", no_args_is_help=True)
app.callback(invoke_without_command=True)(with_exit_codes(version))
spacy_app.add_typer(app)
