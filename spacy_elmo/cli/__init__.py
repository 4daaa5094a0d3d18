"""`python -m spacy elmo ...`: a command a file."""

import typer
from spacy.cli._util import app as spacy_app

from ..pipeline import registries  # noqa: F401  # so that find-function knows span_getters
from .demo import demo
from .download import download
from .embed import embed
from .evaluate import evaluate
from .info import info
from .init_config import init_config
from .pretrain import pretrain
from .similar import similar
from .weights import weights

app = typer.Typer(name="elmo", help="Deep contextualized word vectors (ELMo).", no_args_is_help=True)
for command in (demo, embed, similar, info, download, pretrain, evaluate, init_config, weights):
    app.command(command.__name__.replace("_", "-"))(command)
spacy_app.add_typer(app)
