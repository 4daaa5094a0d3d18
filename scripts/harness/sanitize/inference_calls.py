"""One random call of each loop that inference uses. The results are those of one seed, compiled or in torch."""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import Generator, Tensor

from spacy_elmo import kernels
from spacy_elmo.formats.options import BiLMOptions
from spacy_elmo.inference import Engine
from spacy_elmo.inference import lstm as kinds
from spacy_elmo.inference.engine import fill, new_layers
from spacy_elmo.modules import BiLM, LstmState

from .draws import chance, integer, normal, size

_SIZES = ((64, 64), (128, 64), (96, 32), (40, 24), (192, 128))
_ALL = kinds.KINDS
_LOCK = threading.Lock()
_ENGINES: dict[tuple[object, ...], Engine] = {}


def copy_rows(g: Generator) -> list[Tensor]:
    """Copies rows into the arrays of sentences."""
    sentences, width, boundary = size(g, 6), integer(g, 1, 40), integer(g, 0, 1)
    options = BiLMOptions(1, ((1, 1),), 0, "relu", 50, width, width, 1, None, None, False)
    tokens = np.array([size(g, 7) for _ in range(sentences)], np.int64)
    layers, lengths = new_layers(options, tokens), tokens + 2 * boundary
    for array in layers:
        array[:] = 0
    rows = normal(g, integer(g, 1, 20), width)
    places = torch.randint(0, len(rows), (int(lengths.sum()),), generator=g).numpy()
    for d in range(2):
        fill(layers, [(rows, places), (rows, places[::-1].copy())], lengths, boundary, d)
    return [torch.from_numpy(array) for array in layers]


def run_engine(g: Generator) -> list[Tensor]:
    """Sentences through the engine, from the zero state or from another, with one kind of compiled call."""
    engine = _engine(integer(g, 0, len(_SIZES) - 1), integer(g, 0, len(_ALL)))
    words = [f"w{k}" * (1 + k % 20) for k in range(30)] + ["", "\x00", "東京", "🙂" * 40]
    lengths = [size(g, 12) for _ in range(size(g, 40))]
    sentences = [[words[integer(g, 0, len(words) - 1)] for _ in range(n)] for n in lengths]
    if not chance(g, 0.4) or 0 in lengths or not lengths:
        return [torch.from_numpy(array) for array in engine.run(sentences)]
    options, rows = engine.options, len(sentences)
    shapes = ((options.n_layers, 2, rows, width) for width in (options.projection_dim, options.dim))
    layers, ends = engine.run_from(sentences, LstmState(*(normal(g, *shape) for shape in shapes)))
    return [*map(torch.from_numpy, layers), *ends]


def _engine(number: int, kind: int) -> Engine:
    """Return an engine of some size, with one kind of compiled call or with none, made once."""
    in_torch = kernels.load() is None
    key = (number, kind, in_torch)
    with _LOCK:
        if key not in _ENGINES:
            dim, width = _SIZES[number]
            options = BiLMOptions(4, ((1, 4), (2, 8), (7, 70)), 1, "relu", 50, dim, width, 2, 3.0, 3.0, True)
            bilm = BiLM(options)
            bilm.reset_parameters(torch.Generator().manual_seed(number))
            dtype = torch.float32 if kind == len(_ALL) else _ALL[kind].operands
            kinds.KINDS = _ALL[kind : kind + 1]  # type: ignore[assignment]
            try:
                _ENGINES[key] = Engine.of(bilm, dtype, cached_words=10)
            finally:
                kinds.KINDS = _ALL
        return _ENGINES[key]
