"""A layer that maps its input to a certain width, and does nothing if the input has this width."""

from collections.abc import Callable
from typing import Any

from thinc.api import Linear, Model, with_array
from thinc.types import Floats2d

Floats2dList = list[Floats2d]


def fit_width(width: int) -> Model[Floats2dList, Floats2dList]:
    """Build a layer: *Shape:* (tokens, any width) for each doc -> *Shape:* (tokens, width) for each doc.

    If the input has the width already, the layer returns it unchanged, and its Linear layer has no parameters. This is
    decided at initialisation, because spaCy's embeddings do not know their width before.

    width: width of the output.
    """
    return Model("fit_width", forward, init=init, dims={"nO": width}, layers=[with_array(Linear(width))])


def init(model: Model[Floats2dList, Floats2dList], X: Floats2dList | None = None, Y: Any = None) -> None:
    """Initialise the Linear layer, if the input does not have the width of the output.

    X: sample inputs, *Shape:* (tokens, any width) each; None: the layer is not initialised.
    Y: ignored.
    """
    if X and X[0].shape[1] != model.get_dim("nO"):
        model.layers[0].initialize(X=X)


def forward(
    model: Model[Floats2dList, Floats2dList], X: Floats2dList, is_train: bool
) -> tuple[Floats2dList, Callable[[Floats2dList], Floats2dList]]:
    """Apply the Linear layer, if it was initialised or the width differs.

    X: *Shape:* (tokens, any width) for each doc.
    is_train: whether backprop will be called.

    Returns *Shape:* (tokens, width) for each doc, and backprop.
    """
    array_layer = model.layers[0]
    trained = array_layer.layers[0].has_param("W")
    if not trained and all(x.shape[1] == model.get_dim("nO") for x in X):
        return X, lambda dY: dY
    result: tuple[Floats2dList, Callable[[Floats2dList], Floats2dList]] = array_layer(X, is_train)
    return result
