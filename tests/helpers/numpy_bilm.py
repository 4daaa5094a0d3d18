"""A biLM in plain float64 numpy, loop by loop: the reference that the package's networks are compared with.

It knows the official file alone (names and layouts of its datasets), and nothing of the package but the options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_elmo.formats import BiLMOptions

Array = npt.NDArray[np.float64]
BEGIN, END, PADDING = 258, 259, 260
BOUNDARIES = {"<S>": [BEGIN, 256, END], "</S>": [BEGIN, 257, END]}


class State(NamedTuple):
    """One row's state. h: (n_layers, 2, projection_dim); c: (n_layers, 2, dim)."""

    h: Array
    c: Array


class Result(NamedTuple):
    """layers: (n_layers + 1, tokens, 2 * projection_dim). end: the state at the sentence's end.
    hidden, cells: (n_layers, 2, tokens + 2, projection_dim or dim), the state after each step, in reading order.
    """

    layers: Array
    end: State
    hidden: Array
    cells: Array


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def characters(word: str, longest: int) -> list[int]:
    """Rows of char_embed: the word's bytes between its marks, padded."""
    ids = BOUNDARIES.get(word) or [BEGIN, *word.encode("utf-8")[: longest - 2], END]
    return ids + [PADDING] * (longest - len(ids))


class NumpyBiLM:
    """datasets: arrays by their names in the file. What is not among them (a projection) is not applied."""

    def __init__(self, options: BiLMOptions, datasets: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self.options = options
        self.datasets = {name: np.asarray(array, np.float64) for name, array in datasets.items()}

    def zero_state(self) -> State:
        o = self.options
        return State(np.zeros((o.n_layers, 2, o.projection_dim)), np.zeros((o.n_layers, 2, o.dim)))

    def encode(self, word: str) -> Array:
        """The word's vector, (projection_dim,)."""
        data, o = self.datasets, self.options
        embedded = [data["char_embed"][i] for i in characters(word, o.max_characters)]
        pooled = []
        for i, (width, n) in enumerate(o.filters):
            highest = np.full(n, -np.inf)
            for start in range(o.max_characters - width + 1):
                window = data[f"CNN/b_cnn_{i}"].copy()
                for k in range(width):
                    window += embedded[start + k] @ data[f"CNN/W_cnn_{i}"][0, k]
                highest = np.maximum(highest, window)
            pooled.append(np.tanh(highest) if o.activation == "tanh" else np.maximum(highest, 0))
        x = np.concatenate(pooled)
        for k in range(o.n_highway):
            high = f"CNN_high_{k}/"
            carry = sigmoid(x @ data[high + "W_carry"] + data[high + "b_carry"])
            transform = np.maximum(x @ data[high + "W_transform"] + data[high + "b_transform"], 0)
            x = carry * transform + (1 - carry) * x
        if "CNN_proj/W_proj" in data:
            x = x @ data["CNN_proj/W_proj"] + data["CNN_proj/b_proj"]
        return np.asarray(x)

    def cell(self, layer: int, direction: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """One step: the next h and c."""
        group = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
        gates = np.concatenate([x, h]) @ self.datasets[group + "W_0"] + self.datasets[group + "B"]
        i, j, f, o = np.split(gates, 4)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
        if self.options.cell_clip is not None:
            c = np.clip(c, -self.options.cell_clip, self.options.cell_clip)
        h = sigmoid(o) * np.tanh(c)
        if group + "W_P_0" in self.datasets:
            h = h @ self.datasets[group + "W_P_0"]
            if self.options.proj_clip is not None:
                h = np.clip(h, -self.options.proj_clip, self.options.proj_clip)
        return h, c

    def run(self, sentence: Sequence[str], state: State | None = None) -> Result:
        """One sentence, from the zero state or a given one."""
        options = self.options
        h0, c0 = self.zero_state() if state is None else state
        tokens = [self.encode(word) for word in ("<S>", *sentence, "</S>")]
        inputs = [tokens, tokens]
        layers = [np.concatenate([inputs[0], inputs[1]], 1)]
        hidden, cells = [], []
        for layer in range(options.n_layers):
            outputs, layer_h, layer_c = [], [], []
            for direction in (0, 1):
                h, c = h0[layer, direction], c0[layer, direction]
                hs, cs = [], []
                for x in inputs[direction] if direction == 0 else inputs[direction][::-1]:
                    h, c = self.cell(layer, direction, x, h, c)
                    hs.append(h)
                    cs.append(c)
                layer_h.append(hs)
                layer_c.append(cs)
                out = hs if direction == 0 else hs[::-1]
                if layer > 0 and options.use_skip_connections:
                    out = [a + b for a, b in zip(out, inputs[direction], strict=True)]
                outputs.append(out)
            inputs = outputs
            layers.append(np.concatenate([inputs[0], inputs[1]], 1))
            hidden.append(layer_h)
            cells.append(layer_c)
        all_hidden, all_cells = np.array(hidden), np.array(cells)
        end = State(all_hidden[:, :, -1], all_cells[:, :, -1])
        return Result(np.array(layers)[:, 1:-1], end, all_hidden, all_cells)
