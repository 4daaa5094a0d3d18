"""The engine against the module. The component and ElmoEmbedder run it on AllenNLP's outputs."""

import copy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import (
    bilm_of,
    drawn_options,
    largest_difference,
    random_datasets,
    random_state,
    run,
    seeds,
    sentence_lists,
)
from engine_cases import SMALL, allow, bilm_with, sentences_of, small
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo import kernels
from spacy_elmo.errors import SettingsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.inference import Engine, dtype_of, token_batches
from spacy_elmo.inference import linear as precision
from spacy_elmo.modules import LstmState

CLOSE = 1e-5
CPU = torch.device("cpu")
SENTENCES = [
    ["Stick", "to", "the", "river", "bank", "."],
    ["."],
    ["the", "the", "naïve", "東京", "🙂"],
    [],
    ["a", "longer", "one", ",", "of", "nine", "words", "in", "all"],
]


def close(got: list[np.ndarray], expected: list[np.ndarray], tolerance: float = CLOSE) -> None:
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == np.float32
        assert largest_difference(a, b) <= tolerance


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(drawn_options(), st.booleans(), st.booleans(), seeds, sentence_lists, st.booleans())
def test_equals_the_module(
    options: BiLMOptions,
    char_projection: bool,
    lstm_projection: bool,
    seed: int,
    sentences: list[list[str]],
    zero: bool,
) -> None:
    datasets = random_datasets(options, seed, char_projection=char_projection, lstm_projection=lstm_projection)
    bilm = bilm_of(options, datasets)
    fast, state = Engine(bilm), random_state(options, len(sentences), seed, torch.float32)
    if zero:
        close(fast.run(sentences), run(bilm, sentences)[0])
        state = bilm.lstm.zero_state(len(sentences))
    results, end = fast.run_from(sentences, state)
    expected, expected_end = run(bilm, sentences, state)
    close(results, expected)
    for got, wanted in zip(end, expected_end, strict=True):
        assert largest_difference(got, wanted) <= CLOSE


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dim": 8},
        {"cell_clip": None, "proj_clip": None},
        {"cell_clip": 0.2, "proj_clip": 0.1},
        {"activation": "tanh"},
        {"use_skip_connections": False},
        {"n_layers": 3},
        {"n_highway": 0},
        {"projection_dim": 20},
    ],
    ids=str,
)
def test_variants(changes: dict[str, object]) -> None:
    bilm, state = small(**changes), random_state(small(**changes).options, len(SENTENCES), dtype=torch.float32)
    close(Engine(bilm).run(SENTENCES), run(bilm, SENTENCES)[0])
    close(Engine(bilm).run_from(SENTENCES, state)[0], run(bilm, SENTENCES, state)[0])


def test_the_same_bits_twice() -> None:
    fast = Engine(small())
    state = random_state(SMALL, len(SENTENCES), dtype=torch.float32)
    before = [part.clone() for part in state]
    (first, end), (second, end_again) = fast.run_from(SENTENCES, state), fast.run_from(SENTENCES, state)
    for a, b in zip([*first, *map(np.asarray, end)], [*second, *map(np.asarray, end_again)], strict=True):
        assert a.tobytes() == b.tobytes()
    for part, was in zip(state, before, strict=True):  # what was given is left as it was
        assert torch.equal(part, was)


def test_words_of_ten_thousand_characters() -> None:
    bilm = small()
    sentences = [["é" * 10_000, "x"], ["é" * 24, "x"], ["a" * 10_000]]
    results = Engine(bilm).run(sentences)
    close(results, run(bilm, sentences)[0])
    close([results[0]], [results[1]])  # 24 characters of two bytes are all that is seen


def test_empty_sentences() -> None:
    bilm = small()
    fast = Engine(bilm)
    (layers,), end = fast.run_from([[]], bilm.lstm.zero_state(1))
    assert layers.shape == (3, 0, 16)
    assert largest_difference(end.h, run(bilm, [[]])[1].h) <= CLOSE  # the boundaries were read
    assert fast.run([[]])[0].shape == (3, 0, 16)
    assert [result.shape[1] for result in fast.run([[], ["a"], []])] == [0, 1, 0]
    assert fast.run([]) == []
    results, state = fast.run_from([], bilm.lstm.zero_state(0))
    assert results == []
    assert state.h.shape == (2, 2, 0, 8)
    assert state.c.shape == (2, 2, 0, 24)


def test_results_own_their_memory() -> None:
    for result in Engine(small()).run(SENTENCES):
        assert result.flags.owndata
        assert result.flags.writeable


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, CLOSE), (torch.bfloat16, 0.05), (torch.float16, 0.01)], ids=str
)
def test_a_network_of_another_type(dtype: torch.dtype, tolerance: float) -> None:
    """The characters' convolutions run in its own, all else is float32."""
    bilm = small().to(dtype)
    exact = copy.deepcopy(bilm).double()
    expected, expected_end = run(exact, SENTENCES)
    fast = Engine(bilm)
    layers, end = fast.run_from(SENTENCES, bilm.lstm.zero_state(len(SENTENCES)))
    close([*layers, *map(np.asarray, end)], [*expected, *map(np.asarray, expected_end)], tolerance)
    close(fast.run(SENTENCES), expected, tolerance)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_modes_gradients_and_default_types_of_the_caller_make_no_difference(n_threads: int) -> None:
    bilm = small()
    sentences = [["a", "b"], ["c"] * 40]
    expected = Engine(bilm).run(sentences)
    torch.set_num_threads(n_threads)
    with torch.inference_mode():
        fast = Engine(bilm, cached_words=10)
        results = [fast.run(sentences), fast.run_from(sentences, fast.zero_state(2))[0]]
    state = LstmState(*(part.requires_grad_() for part in fast.zero_state(2)))
    layers, end = fast.run_from(sentences, state)
    assert not any(part.requires_grad for part in end)
    results += [layers, fast.run([*sentences, ["new"]])[:2]]
    for dtype in (torch.float64, torch.bfloat16):
        try:
            torch.set_default_dtype(dtype)
            results.append(Engine(bilm, cached_words=10).run(sentences))
        finally:
            torch.set_default_dtype(torch.float32)
    for got in results:
        close(got, expected)


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 60))
def test_every_sentence_once_within_the_budget(lengths: list[int], max_tokens: int) -> None:
    batches = token_batches(lengths, max_tokens)
    order = [i for batch in batches for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert sum(lengths[i] for i in batch) <= max_tokens or sum(lengths[i] > 0 for i in batch) == 1
    for batch, after in pairwise(batches):
        assert sum(lengths[i] for i in batch) + lengths[after[0]] > max_tokens


def test_128_sentences_of_60_tokens_are_one_batch_of_8192() -> None:
    assert len(token_batches([60] * 128, 8192)) == 1


@pytest.mark.parametrize("has", [True, False])
def test_what_the_settings_mean(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: has)
    low = torch.bfloat16 if has else torch.float32
    for dtype in ("float32", "bfloat16"):
        assert dtype_of(dtype, CPU) == getattr(torch, dtype)  # type: ignore[arg-type]
    for sets in ((), ("AVX2",)):
        monkeypatch.setattr(kernels, "loops_state", lambda sets=sets: kernels.State(True, "", sets))
        assert dtype_of("auto", CPU) == (torch.bfloat16 if sets else low)
    with pytest.raises(SettingsError, match="precision is 'int8'"):
        dtype_of("int8", CPU)  # type: ignore[arg-type]


def test_what_the_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(precision, "CPUINFO", cpuinfo)
    assert not precision.has_bfloat16(CPU)
    for flags, has in (("flags : fpu avx512f", False), ("flags : fpu amx_bf16", True), ("Features : fp bf16", True)):
        cpuinfo.write_text(flags)
        assert precision.has_bfloat16(CPU) == has
        with monkeypatch.context() as limited:
            limited.setenv("SPACY_ELMO_ISA", "none")
            assert not precision.has_bfloat16(CPU)


@pytest.mark.parametrize("kind", ["avx2", "neon", None])
def test_bfloat16_that_the_processor_does_not_multiply(kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that bfloat16 holds exactly give the bits of float32; others are rounded, in compiled LSTMs alone."""
    allow(kind, monkeypatch)
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: False)
    sentences = sentences_of([5, 1, 9])
    bilm = bilm_with()

    def difference() -> float:
        exact, low = (np.concatenate(Engine(bilm, t).run(sentences), 1) for t in (torch.float32, torch.bfloat16))
        return float(np.abs(exact - low).max())

    assert (difference() > 0) == (kind is not None)
    for parameter in bilm.lstm.parameters():
        parameter.data = parameter.data.bfloat16().float()
    assert difference() == 0
