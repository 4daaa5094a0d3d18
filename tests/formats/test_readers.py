"""Which programs can read a biLM: against what AllenNLP 2.10.1 and bilm-tf read of a file, written out from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from weight_files import random_arrays

from spacy_elmo.formats import BiLMOptions, write_weights
from spacy_elmo.formats.weights import readers_of, readers_told

PLAIN = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 50, 20, 6, 2, 3.0, 3.0, True)
CASES: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "all": ({}, ()),
    "no highway, no clips": ({"n_highway": 0, "cell_clip": None, "proj_clip": None}, ()),
    "no skip connections": ({"use_skip_connections": False}, ()),
    "one layer without skip connections": ({"use_skip_connections": False, "n_layers": 1}, ()),
    "25 characters": ({"max_characters": 25}, ()),
    "no LSTM projection": ({"dim": 6}, ()),
    "no character projection": ({"projection_dim": 12}, ()),
    "LSTM projection without need": ({"dim": 6}, ("lstm.layers.0.projection",)),
    "character projection without need": ({"projection_dim": 12}, ("char_cnn.projection.weight",)),
    "fewer filters than projection_dim": ({"projection_dim": 16}, ()),
    "8 layers": ({"n_layers": 8}, ()),
    "9 layers": ({"n_layers": 9}, ()),
}


def allennlp_refuses(options: BiLMOptions, file: h5py.File) -> bool:
    """_ElmoBiLm and ElmoLstm.load_weights: the datasets that they ask for. Elmo's words have 50 characters, which
    _ElmoCharacterEncoder views as (-1, max_characters_per_token), and views the result as the number of words again.
    """
    if not options.to_dict()["lstm"].get("use_skip_connections"):
        return True  # raise ConfigurationError("We only support pretrained biLMs with residual connections")
    words = 3
    if words * 50 % options.max_characters or words * 50 // options.max_characters != words:
        return True
    try:
        file["char_embed"][...]
        for i, _ in enumerate(options.filters):
            file["CNN"][f"W_cnn_{i}"][...], file["CNN"][f"b_cnn_{i}"][...]
        for k in range(options.n_highway):
            file[f"CNN_high_{k}"]["W_transform"][...], file[f"CNN_high_{k}"]["W_carry"][...]
        file["CNN_proj"]["W_proj"][...], file["CNN_proj"]["b_proj"][...]
        for direction in range(2):
            for layer in range(options.n_layers):
                dataset = file[f"RNN_{direction}"]["RNN"]["MultiRNNCell"][f"Cell{layer}"]["LSTMCell"]
                dataset["W_0"][...], dataset["B"][...], dataset["W_P_0"][...]
    except KeyError:
        return True
    return False


def bilm_tf_variables(options: BiLMOptions) -> Iterator[str]:
    """The names in the file of the variables that BidirectionalLanguageModelGraph makes."""
    names = {
        f"RNN_{i}/RNN/MultiRNNCell/Cell{j}": f"RNN_{i}/RNN/MultiRNNCell/Cell{j}/LSTMCell/"
        for i in range(2)
        for j in range(8)  # if we decide to add more layers
    }
    n_filters = sum(n for _, n in options.filters)
    yield "char_embed"
    for i, _ in enumerate(options.filters):
        yield from (f"CNN/W_cnn_{i}", f"CNN/b_cnn_{i}")
    if n_filters != options.projection_dim:
        assert n_filters > options.projection_dim
        yield from ("CNN_proj/W_proj", "CNN_proj/b_proj")
    for k in range(options.n_highway):
        yield from (f"CNN_high_{k}/{part}" for part in ("W_carry", "b_carry", "W_transform", "b_transform"))
    for i in range(2):
        for j in range(options.n_layers):
            root = names[f"RNN_{i}/RNN/MultiRNNCell/Cell{j}"]
            yield from (root + "W_0", root + "B")
            if options.projection_dim < options.dim:
                yield root + "W_P_0"


def bilm_tf_refuses(options: BiLMOptions, file: h5py.File) -> bool:
    """Or leaves out a dataset of the file, so that its vectors would be others."""
    present: list[str] = []
    file.visititems(lambda name, item: present.append(name) if isinstance(item, h5py.Dataset) else None)
    try:
        return sorted(bilm_tf_variables(options)) != sorted(present)
    except (AssertionError, KeyError):
        return True


@pytest.mark.parametrize("case", CASES)
def test_as_their_sources_read(tmp_path: Path, case: str) -> None:
    changes, extra = CASES[case]
    options = dataclasses.replace(PLAIN, **changes)  # type: ignore[arg-type]
    arrays = random_arrays(options, extra)
    write_weights(tmp_path / "weights.hdf5", options, arrays)
    ours, allennlp, bilm_tf = readers_of(options, arrays)
    with h5py.File(tmp_path / "weights.hdf5") as file:
        assert bool(allennlp.problems) is allennlp_refuses(options, file)
        assert bool(bilm_tf.problems) is bilm_tf_refuses(options, file)
    assert not ours.problems
    assert np.isin([ours.name, allennlp.name, bilm_tf.name], ["this package", "AllenNLP", "bilm-tf"]).all()
    if not extra:
        assert readers_of(options) == [ours, allennlp, bilm_tf]


def allennlp_asks_for(contents: Any) -> None:
    """_ElmoBiLm.__init__, ElmoLstm's arguments and _load_highway, and the layers that Highway makes."""
    range(contents["char_cnn"]["n_highway"])
    contents["lstm"]["cell_clip"], contents["lstm"]["proj_clip"]


def bilm_tf_asks_for(contents: Any) -> None:
    """_build_word_char_embeddings and _build_lstms: char_embed has the mask's row and 261 from the file."""
    assert contents["char_cnn"]["n_characters"] == 262
    contents["lstm"]["use_skip_connections"], contents["lstm"].get("cell_clip"), contents["lstm"].get("proj_clip")
    contents["char_cnn"].get("n_highway")


KEYS = ["char_cnn.n_highway", "char_cnn.n_characters", "lstm.cell_clip", "lstm.proj_clip", "lstm.use_skip_connections"]


@pytest.mark.parametrize(
    ("key", "value"), [*((key, value) for key in KEYS for value in (..., None)), ("char_cnn.n_characters", 261)]
)
def test_what_an_options_file_leaves_out(key: str, value: object) -> None:
    contents = PLAIN.to_dict()
    part, name = key.split(".")
    contents[part][name] = value
    if value is ...:
        del contents[part][name]
    options = BiLMOptions.from_dict(contents)
    refused = []
    for asks_for in (allennlp_asks_for, bilm_tf_asks_for):
        try:
            asks_for(contents)
            refused.append(False)
        except (KeyError, TypeError, AssertionError):
            refused.append(True)
    _, allennlp, bilm_tf = readers_of(options, None, contents)
    assert (bool(allennlp.problems), bool(bilm_tf.problems)) == (
        refused[0] or name == "use_skip_connections",
        refused[1],
    )
    if value is ... and refused[1]:
        assert bilm_tf.problems == [f"no {key} in options.json"]


def test_the_line() -> None:
    assert readers_told(PLAIN) == "this package, AllenNLP, bilm-tf"
    told = readers_told(dataclasses.replace(PLAIN, dim=6, use_skip_connections=False))
    assert told.startswith("this package, bilm-tf; not AllenNLP: no projection in the LSTMs")
    assert told.endswith(", no skip connections (lstm.use_skip_connections)")
