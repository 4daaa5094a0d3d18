"""The four official models: their sizes, and what is known of their files."""

from __future__ import annotations

from typing import NamedTuple

from .options import BiLMOptions

_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class OfficialModel(NamedTuple):
    """An official model. sha256 and n_bytes are those of its weight file; None where nobody has vouched for them."""

    name: str
    options: BiLMOptions
    sha256: str | None = None
    n_bytes: int | None = None


def _options(dim: int, projection_dim: int, n_highway: int) -> BiLMOptions:
    return BiLMOptions(16, _FILTERS, n_highway, "relu", 50, dim, projection_dim, 2, 3.0, 3.0, True)


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
    """The official model with this hash of its weight file, or else with these sizes; and whether by the hash."""
    for model in OFFICIAL_MODELS:
        if sha256 is not None and sha256 == model.sha256:
            return model, True
    for model in OFFICIAL_MODELS:
        if options == model.options:
            return model, False
    return None
