"""The factory `semantic_roles`."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language

from ..shared.tok2vec import default_tok2vec
from .component import SemanticRoles
from .model import RoleModel

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.SemanticRoles.v1",
    "lstm_width": 100,
    "depth": 2,
    "tok2vec": default_tok2vec(depth=4),
}


@Language.factory(
    "semantic_roles",
    assigns=["doc.spans"],
    default_config={
        "model": DEFAULT_MODEL,
        "find_predicates": True,
        "threshold": 0.5,
        "reach": 100,
        "scorer": {"@scorers": "spacy-elmo.roles_scorer.v1"},
    },
    default_score_weights={"roles_f": 1.0, "roles_p": 0.0, "roles_r": 0.0, "roles_per_type": None},
)
def make_semantic_roles(
    nlp: Language,
    name: str,
    model: RoleModel,
    find_predicates: bool,
    threshold: float,
    reach: int,
    scorer: Callable[..., dict[str, Any]] | None,
) -> SemanticRoles:
    """Create the component `semantic_roles`. The arguments are those of `SemanticRoles`."""
    return SemanticRoles(
        nlp.vocab, model, name, find_predicates=find_predicates, threshold=threshold, reach=reach, scorer=scorer
    )
