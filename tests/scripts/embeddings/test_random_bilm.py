"""The control has the sizes asked for, weights by its seed alone, and loads as any biLM does."""

from pathlib import Path

import numpy as np
import pytest
import spacy

from scripts.embeddings.random_bilm import write_random_bilm
from spacy_elmo.formats import read_options, read_weights


def test_random_bilm(tmp_path: Path, golden: Path) -> None:
    options_file = golden / "random_a" / "options.json"
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_random_bilm(tmp_path / name, options_file, seed)
    options = read_options(options_file)
    a, b, c = (read_weights(tmp_path / name / "weights.hdf5", options) for name in "abc")
    assert read_options(tmp_path / "a" / "options.json") == options
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not np.array_equal(a["lstm.layers.0.projection"], c["lstm.layers.0.projection"])
    nlp = spacy.blank("en")
    files = {"options_file": str(tmp_path / "a/options.json"), "weight_file": str(tmp_path / "a/weights.hdf5")}
    nlp.add_pipe("elmo", config={"model": files})
    vectors = nlp("It rains")._.elmo
    assert vectors.shape == (2, options.width)
    assert np.abs(vectors).max() > 0


def test_no_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.json"):
        write_random_bilm(tmp_path / "x", tmp_path / "none.json", 0)
    assert not (tmp_path / "x").exists()
