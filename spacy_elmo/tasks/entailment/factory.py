"""The factory `entailment`."""

from spacy.language import Language

from ..shared.tok2vec import default_tok2vec
from .component import Entailment, Scorer
from .model import EntailmentModel

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.Entailment.v1",
    "lstm_width": 64,
    "longest": 1000,
    "nO": None,
    "tok2vec": default_tok2vec(depth=1),
}


@Language.factory(
    "entailment",
    assigns=["doc.cats"],
    default_config={"model": DEFAULT_MODEL, "scorer": {"@scorers": "spacy-elmo.entailment_scorer.v1"}},
    default_score_weights={"cats_acc": 1.0, "cats_macro_f": 0.0, "cats_f_per_type": None},
)
def make_entailment(nlp: Language, name: str, model: EntailmentModel, scorer: Scorer | None) -> Entailment:
    """Create the component `entailment`. The arguments are those of `Entailment`."""
    return Entailment(nlp.vocab, model, name, scorer=scorer)
