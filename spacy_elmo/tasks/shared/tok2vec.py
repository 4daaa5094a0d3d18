"""The tok2vec of a component: the one that it has by default, and the width of any."""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from ...models.types import Tok2VecModel


def default_tok2vec(depth: int) -> dict[str, Any]:
    """Return the config of a tok2vec on word features, without ELMo.

    depth: number of convolutional layers: each token's vector knows of that many tokens on each side.
    """
    return {
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
            "depth": depth,
            "window_size": 1,
            "maxout_pieces": 3,
        },
    }


def width_of(tok2vec: Tok2VecModel, docs: Sequence[Doc]) -> int:
    """Return the width of a tok2vec's vectors: what it says itself, or that of its vectors of a doc.

    tok2vec: initialised.
    docs: sample docs, one or more.
    """
    width = tok2vec.maybe_get_dim("nO")
    return tok2vec.predict(list(docs[:1]))[0].shape[1] if width is None else width
