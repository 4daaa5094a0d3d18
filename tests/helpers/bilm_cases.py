"""Small random biLMs and sentences, drawn by hypothesis, and biLMs made of the official file's datasets."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import numpy.typing as npt
import torch
from hypothesis import strategies as st
from numpy_bilm import NumpyBiLM, State
from torch import Tensor

from spacy_elmo.formats import BiLMOptions, batch_to_ids_array, read_weights
from spacy_elmo.modules import BiLM, LstmState

Datasets = dict[str, npt.NDArray[np.float32]]
TRICKY = ["<S>", "</S>", "<s>", "naïve", "東京", "🙂", "👩‍👩‍👧", "\u200b", "\t", ""]


class Case(NamedTuple):
    """One network twice: in the package, float64, and in numpy."""

    bilm: BiLM
    reference: NumpyBiLM


@st.composite
def drawn_options(draw: st.DrawFn, clips: Sequence[float | None] = (None, 3.0, 0.3)) -> BiLMOptions:
    """Small sizes of every kind."""
    longest = draw(st.sampled_from([3, 6, 11, 50]))
    filters = draw(st.lists(st.tuples(st.integers(1, min(4, longest)), st.integers(1, 3)), min_size=1, max_size=3))
    dim = draw(st.integers(1, 6))
    return BiLMOptions(
        char_dim=draw(st.integers(1, 4)),
        filters=tuple(filters),
        n_highway=draw(st.integers(0, 2)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
        max_characters=longest,
        dim=dim,
        projection_dim=draw(st.one_of(st.just(dim), st.integers(1, dim))),
        n_layers=draw(st.integers(1, 3)),
        cell_clip=draw(st.sampled_from(clips)),
        proj_clip=draw(st.sampled_from(clips)),
        use_skip_connections=draw(st.booleans()),
    )


words = st.one_of(st.text(max_size=6), st.sampled_from(TRICKY))
sentence_lists = st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=4)
seeds = st.integers(0, 2**16)


def random_datasets(
    options: BiLMOptions,
    seed: int = 0,
    scale: float = 0.5,
    *,
    char_projection: bool = False,
    lstm_projection: bool = False,
) -> Datasets:
    """Datasets of the official file; the projections are left out where the sizes agree, unless asked for."""
    f, p, d = options.n_filters, options.projection_dim, options.dim
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, options.char_dim)}
    for i, (width, n) in enumerate(options.filters):
        shapes |= {f"CNN/W_cnn_{i}": (1, width, options.char_dim, n), f"CNN/b_cnn_{i}": (n,)}
    for k in range(options.n_highway):
        for gate in ("carry", "transform"):
            shapes |= {f"CNN_high_{k}/W_{gate}": (f, f), f"CNN_high_{k}/b_{gate}": (f,)}
    if char_projection or f != p:
        shapes |= {"CNN_proj/W_proj": (f, p), "CNN_proj/b_proj": (p,)}
    for direction in (0, 1):
        for layer in range(options.n_layers):
            group = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{group}/W_0": (2 * p, 4 * d), f"{group}/B": (4 * d,)}
            if lstm_projection or d != p:
                shapes[f"{group}/W_P_0"] = (d, p)
    rng = np.random.default_rng(seed)
    return {name: (scale * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


def bilm_of(options: BiLMOptions, datasets: Mapping[str, npt.NDArray[np.float32]]) -> BiLM:
    """The package's network, float32, by way of a weight file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.hdf5")
        with h5py.File(path, "w") as file:
            for name, array in datasets.items():
                file[name] = array
        return BiLM.from_arrays(options, read_weights(path, options))


def case_of(options: BiLMOptions, datasets: Mapping[str, npt.NDArray[np.float32]]) -> Case:
    return Case(bilm_of(options, datasets).double(), NumpyBiLM(options, datasets))


@st.composite
def cases(draw: st.DrawFn, scale: float = 0.5) -> Case:
    """Networks of every kind, with random weights."""
    options = draw(drawn_options())
    char_projection, lstm_projection = draw(st.booleans()), draw(st.booleans())
    return case_of(
        options,
        random_datasets(options, draw(seeds), scale, char_projection=char_projection, lstm_projection=lstm_projection),
    )


def character_ids(sentences: Sequence[Sequence[str]], options: BiLMOptions) -> Tensor:
    return torch.from_numpy(batch_to_ids_array(sentences, options.max_characters))


def run(
    bilm: BiLM, sentences: Sequence[Sequence[str]], state: LstmState | None = None
) -> tuple[list[npt.NDArray[np.floating]], LstmState]:
    """Each sentence's layers without boundaries and padding, and the state, by the module."""
    with torch.no_grad():
        output = bilm(character_ids(sentences, bilm.options), state)
    layers = [output.layers[:, row, 1 : len(words) + 1].numpy() for row, words in enumerate(sentences)]
    return layers, output.state


def random_state(options: BiLMOptions, rows: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> LstmState:
    rng = np.random.default_rng(seed)
    h = rng.uniform(-1, 1, (options.n_layers, 2, rows, options.projection_dim))
    c = rng.uniform(-1, 1, (options.n_layers, 2, rows, options.dim))
    return LstmState(torch.from_numpy(h).to(dtype), torch.from_numpy(c).to(dtype))


def row_of(state: LstmState, row: int) -> State:
    return State(state.h[:, :, row].double().numpy(), state.c[:, :, row].double().numpy())


def largest_difference(got: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """The largest absolute difference; shapes must agree (no broadcasting)."""
    a, b = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.abs(a - b).max(initial=0.0))
