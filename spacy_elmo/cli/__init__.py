"""`python -m spacy elmo ...`: a command a file."""

import typer
from spacy.cli._util import app as spacy_app

from .demo import demo
from .evaluate import evaluate
from .pretrain import pretrain

app = typer.Typer(name="elmo", help="Deep contextualized word vectors (ELMo).", no_args_is_help=True)
app.command()(demo)
app.command()(pretrain)
app.command()(evaluate)
spacy_app.add_typer(app)
