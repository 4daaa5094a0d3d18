"""The factory `semantic_roles`."""

from collections.abc import Callable
from typing import Any

from spacy.language import Language

from .component import SemanticRoles
from .model import RoleModel

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.SemanticRoles.v1",
    "hidden_width": 100,
    "depth": 2,
    "tok2vec": {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 96,
            "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
            "rows": [5000, 1000, 2500, 2500],
            "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 96,
            "depth": 4,
            "window_size": 1,
            "maxout_pieces": 3,
        },
    },
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
    """Create the component `semantic_roles`.

    nlp: the pipeline.
    name: name of the component.
    model: spacy-elmo.SemanticRoles.v1.
    find_predicates: whether the component finds the predicates of docs without `doc.spans["predicates"]`; false: such
        docs are an error.
    threshold: probability from which on a token is a predicate.
    reach: number of tokens on each side of a predicate among which its arguments are looked for, at most.
    scorer: spacy-elmo.roles_scorer.v1; null: no scores.

    Raises SettingsError if a setting cannot be used.
    """
    return SemanticRoles(
        nlp.vocab, model, name, find_predicates=find_predicates, threshold=threshold, reach=reach, scorer=scorer
    )
