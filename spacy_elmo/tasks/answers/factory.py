"""The factory `answers`."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language

from ..shared.tok2vec import default_tok2vec
from .component import Answers
from .model import AnswersModel

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.Answers.v1",
    "lstm_width": 64,
    "self_attention": True,
    "longest_window": 400,
    "window_overlap": 100,
    "tok2vec": default_tok2vec(depth=1),
}


@Language.factory(
    "answers",
    assigns=["doc.spans", "span._.answer_score"],
    default_config={
        "model": DEFAULT_MODEL,
        "n_best": 3,
        "longest_answer": 17,
        "scorer": {"@scorers": "spacy-elmo.answers_scorer.v1"},
    },
    default_score_weights={"answers_f1": 1.0, "answers_em": 0.0},
)
def make_answers(
    nlp: Language,
    name: str,
    model: AnswersModel,
    n_best: int,
    longest_answer: int,
    scorer: Callable[..., dict[str, Any]] | None,
) -> Answers:
    """Create the component `answers`. Its arguments are those of `Answers`."""
    return Answers(nlp.vocab, model, name, n_best=n_best, longest_answer=longest_answer, scorer=scorer)
