"""Vectors of one layer, or of the mix, with length 1."""

import numpy as np
import numpy.typing as npt

from ..allennlp.embedder import ElmoEmbedder
from ..errors import Errors, SettingsError, shown
from ..models.bilm_bytes import fingerprint_of
from .header import MIX, Layer

Floats = npt.NDArray[np.float32]


def unit_vectors(layers: Floats, layer: Layer) -> Floats:
    """Return the vectors of a layer, each divided by its length. A vector of zeros stays as it is.

    layers: *Shape:* (layers, words, width).
    layer: number of the layer; "mix": the mean of all layers.

    Returns *Shape:* (words, width).
    """
    vectors: Floats = layers.mean(0) if layer == MIX else layers[layer]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit


def checked_layer(layer: Layer | None, layers: int) -> Layer:
    """Return a layer; None: the last one. Raises SettingsError if a biLM with this number of layers does not have it.

    layer: its number; "mix": the mean of all layers; None: the last one.
    layers: number of the biLM's layers.
    """
    if layer is None:
        return layers - 1
    if layer != MIX and (isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < layers):
        raise SettingsError(Errors.INDEX_LAYER.format(got=shown(layer), last=layers - 1, mix=MIX))
    return layer


def fingerprint(embedder: ElmoEmbedder) -> str:
    """Return the fingerprint of an embedder's biLM. Raises SettingsError if the embedder is stateful."""
    if embedder.stateful:
        raise SettingsError(Errors.INDEX_STATEFUL)
    return fingerprint_of(embedder.options, embedder.to_arrays())
