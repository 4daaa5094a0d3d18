"""The factory `coreference`."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language

from ..shared.tok2vec import default_tok2vec
from .annotations import HEAD, PREFIX
from .component import Coreference
from .model import CoreferenceModel

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.Coreference.v1",
    "tok2vec": default_tok2vec(depth=4),
    "lstm_width": 100,
    "hidden_width": 100,
    "max_width": 15,
    "mentions_per_token": 0.2,
    "antecedents": 100,
    "part_tokens": 2000,
    "train_tokens": 1000,
}


@Language.factory(
    "coreference",
    assigns=["doc.spans", f"doc._.{PREFIX}", f"span._.{HEAD}"],
    default_config={
        "model": DEFAULT_MODEL,
        "prefix": PREFIX,
        "singletons": True,
        "scorer": {"@scorers": "spacy-elmo.coreference_scorer.v1", "prefix": PREFIX, "singletons": True},
    },
    default_score_weights={"coref_f": 1.0},
)
def make_coreference(
    nlp: Language,
    name: str,
    model: CoreferenceModel,
    prefix: str,
    singletons: bool,
    scorer: Callable[..., dict[str, Any]] | None,
) -> Coreference:
    """Create the component `coreference`. The arguments are those of `Coreference`."""
    return Coreference(nlp.vocab, model, name, prefix=prefix, singletons=singletons, scorer=scorer)
