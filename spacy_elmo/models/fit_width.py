"""A linear layer that stands only where a width has to change."""

from collections.abc import Callable
from typing import Any

from thinc.api import Linear, Model, with_array
from thinc.types import Floats2d

Floats2dList = list[Floats2d]


def fit_width(width: int) -> Model[Floats2dList, Floats2dList]:
    """(tokens, any width) each -> (tokens, width) each.

    Where the input has that width already it is handed on unchanged, and the linear layer has no parameters. Which of
    the two it is shows at initialisation: spaCy's embeddings do not know their width before.
    """
    return Model("fit_width", forward, init=init, dims={"nO": width}, layers=[with_array(Linear(width))])


def init(model: Model[Floats2dList, Floats2dList], X: Floats2dList | None = None, Y: Any = None) -> None:
    """X: (tokens, width) each."""
    if X and X[0].shape[1] != model.get_dim("nO"):
        model.layers[0].initialize(X=X)


def forward(
    model: Model[Floats2dList, Floats2dList], X: Floats2dList, is_train: bool
) -> tuple[Floats2dList, Callable[[Floats2dList], Floats2dList]]:
    """X: (tokens, any width) each. Returns (tokens, width) each."""
    array_layer = model.layers[0]
    trained = array_layer.layers[0].has_param("W")
    if not trained and all(x.shape[1] == model.get_dim("nO") for x in X):
        return X, lambda dY: dY
    result: tuple[Floats2dList, Callable[[Floats2dList], Floats2dList]] = array_layer(X, is_train)
    return result
