"""The four official models: their sizes, and the hash of a weight file if it is known."""

from __future__ import annotations

from typing import NamedTuple

from ..options import BiLMOptions

_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class OfficialModel(NamedTuple):
    """An official model.

    name: as people call it.
    options: its sizes and settings.
    sha256: of its weights.hdf5, in hexadecimal; None if no source states it.
    n_bytes: size of its weights.hdf5; None if no source states it.
    """

    name: str
    options: BiLMOptions
    sha256: str | None = None
    n_bytes: int | None = None


def _options(dim: int, projection_dim: int, n_highway: int) -> BiLMOptions:
    return BiLMOptions(
        char_dim=16,
        filters=_FILTERS,
        n_highway=n_highway,
        activation="relu",
        max_characters=50,
        dim=dim,
        projection_dim=projection_dim,
        n_layers=2,
        cell_clip=3.0,
        proj_clip=3.0,
        use_skip_connections=True,
    )


OFFICIAL_MODELS = (
    OfficialModel(
        "small",
        _options(1024, 128, 1),
        "747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229",
        54_402_456,
    ),
    OfficialModel("medium", _options(2048, 256, 1)),
    OfficialModel("original (and 5.5B)", _options(4096, 512, 2)),  # two models of the same sizes
)


def find_official(options: BiLMOptions | None, sha256: str | None = None) -> tuple[OfficialModel, bool] | None:
    """Return the official model with this hash or else with these sizes, and whether the hash decided.

    options: sizes and settings of the biLM; None if they are unknown.
    sha256: of its weights.hdf5, in hexadecimal; None if it is unknown.

    Returns None if no official model has this hash or these sizes.
    """
    for model in OFFICIAL_MODELS:
        if sha256 is not None and sha256 == model.sha256:
            return model, True
    for model in OFFICIAL_MODELS:
        if options == model.options:
            return model, False
    return None
