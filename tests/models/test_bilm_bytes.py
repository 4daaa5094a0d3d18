"""The fingerprint is another one as soon as anything of a biLM is, and the same in any other case."""

import dataclasses

import numpy as np

from spacy_elmo.formats.options import BiLMOptions
from spacy_elmo.models.shim import fingerprint_of

OPTIONS = BiLMOptions(
    char_dim=4, filters=((1, 4),), n_highway=1, activation="relu", max_characters=50, dim=8, projection_dim=4,
    n_layers=1, cell_clip=3.0, proj_clip=3.0, use_skip_connections=True,
)  # fmt: skip


def arrays() -> dict[str, np.ndarray]:
    return {"a": np.arange(6, dtype=np.float32), "b": np.ones(6, np.float32)}


def test_the_fingerprint_depends_on_options_names_and_values() -> None:
    first = fingerprint_of(OPTIONS, arrays())
    a, b = arrays().values()
    others = [
        fingerprint_of(dataclasses.replace(OPTIONS, proj_clip=None), arrays()),
        fingerprint_of(dataclasses.replace(OPTIONS, use_skip_connections=False), arrays()),
        fingerprint_of(OPTIONS, {"a": b, "b": a}),
        fingerprint_of(OPTIONS, {"a": a, "c": b}),
        fingerprint_of(OPTIONS, {"a": a, "b": np.nextafter(b, np.float32(2))}),
    ]
    assert len({first, *others}) == 6
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in (first, *others))


def test_the_order_of_the_weights_does_not_matter() -> None:
    assert fingerprint_of(OPTIONS, dict(reversed(arrays().items()))) == fingerprint_of(OPTIONS, arrays())
