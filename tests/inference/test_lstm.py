"""What runs the LSTMs: each choice against the autograd network, which is tested against AllenNLP's outputs."""

import dataclasses

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets, random_state, run
from engine_cases import LENGTHS, OPTIONS, allow, bilm_with, sentences_of

from spacy_elmo import kernels
from spacy_elmo.inference import Engine
from spacy_elmo.inference.lstm import KINDS, CompiledDirection, TorchDirection
from spacy_elmo.modules import BiLM, LstmState

CHANGES: list[dict[str, object]] = [
    {},
    {"dim": 64, "projection_dim": 64},
    {"dim": 192, "projection_dim": 128},
    {"cell_clip": None, "proj_clip": None},
    {"cell_clip": 0.2, "proj_clip": 0.1},
    {"use_skip_connections": False},
    {"n_layers": 1},
    {"n_layers": 3},
]
TYPES = torch.float32, torch.bfloat16
CHOICES = [(k.name, dtype) for dtype in TYPES for k in KINDS if k.operands in (dtype, torch.float32)]
CHOICES += [(None, dtype) for dtype in TYPES]
LOW = [kind.name for kind in KINDS]


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def check(bilm: BiLM, fast: Engine, lengths: list[int], bound: float) -> None:
    """From the zero state and from others: vectors and states."""
    sentences = sentences_of(lengths)
    for got, wanted in zip(fast.run(sentences), run(bilm, sentences)[0], strict=True):
        assert relative(got, wanted) <= bound
    state = random_state(bilm.options, len(sentences), 1, torch.float32)
    layers, end = fast.run_from(sentences, state)
    expected, expected_end = run(bilm, sentences, state)
    for got, wanted in zip([*layers, *map(np.asarray, end)], [*expected, *map(np.asarray, expected_end)], strict=True):
        assert relative(got, wanted) <= bound


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(("kind", "dtype"), CHOICES, ids=str)
def test_states_with_any_strides(
    rows: int, kind: str | None, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(kind, monkeypatch)
    bilm, sentences = bilm_with(), sentences_of([2, 7, 1, 4][:rows])
    fast, state = Engine(bilm, dtype), random_state(bilm.options, rows, 1, torch.float32)
    turned = LstmState(*(part.transpose(2, 3).contiguous().transpose(2, 3) for part in state))
    spread = LstmState(*(torch.stack([part, part + 1], -1)[..., 0] for part in state))
    alike = LstmState(*(part[..., :1, :1].expand_as(part) for part in state))
    first = LstmState(*(part[:, :, :1].expand_as(part) for part in state))
    mixed = first._replace(h=state.h), first._replace(c=state.c)
    for views in (turned, spread, alike, first, *mixed):
        copied = LstmState(*(part.contiguous() for part in views))
        (got, end), (expected, expected_end) = fast.run_from(sentences, views), fast.run_from(sentences, copied)
        for a, b in zip([*got, *map(np.asarray, end)], [*expected, *map(np.asarray, expected_end)], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("kind", LOW)
def test_bfloat16_of_all_kinds(changes: dict[str, object], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(kind, monkeypatch)
    bilm = bilm_with(**changes)
    fast = Engine(bilm, torch.bfloat16)
    assert all(isinstance(direction, CompiledDirection) for direction in fast.directions)
    check(bilm, fast, LENGTHS[5], 0.02)


@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)} rows")
@pytest.mark.parametrize("kind", LOW)
def test_bfloat16_with_any_number_of_rows(lengths: list[int], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(kind, monkeypatch)
    bilm = bilm_with()
    check(bilm, Engine(bilm, torch.bfloat16), lengths, 0.02)


@pytest.mark.parametrize("kind", LOW)
def test_bfloat16_is_as_near_as_torch(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same products in torch have the same error, within a third."""
    allow(kind, monkeypatch)
    bilm, sentences = bilm_with(), sentences_of(LENGTHS[5])
    exact = np.concatenate(run(bilm, sentences)[0], 1)
    compiled = relative(np.concatenate(Engine(bilm, torch.bfloat16).run(sentences), 1), exact)
    allow(None, monkeypatch)
    monkeypatch.setattr("spacy_elmo.inference.linear.has_bfloat16", lambda device: True)
    fast = Engine(bilm, torch.bfloat16)
    assert all(isinstance(direction, TorchDirection) for direction in fast.directions)
    plain = relative(np.concatenate(fast.run(sentences), 1), exact)
    assert 1e-4 < plain < 0.02
    assert 1e-4 < compiled < 1.33 * plain


@pytest.mark.parametrize("kind", LOW)
@pytest.mark.parametrize(
    "changes",
    [{"dim": 72}, {"projection_dim": 40}, {"dim": 96}, {"projection_dim": 32}, {"dim": 80, "projection_dim": 48}],
    ids=str,
)
def test_sizes_that_compiled_calls_do_not_take(
    changes: dict[str, int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AMX takes multiples of 64, AVX-512 those of 32, AVX2 and NEON those of 16."""
    allow(kind, monkeypatch)
    bilm = bilm_with(**changes)
    fast = Engine(bilm, torch.bfloat16)
    multiple = {"amx": 64, "avx2": 16, "neon": 16}.get(kind, 32)
    takes = not any(size % multiple for size in changes.values())
    assert all(isinstance(direction, CompiledDirection if takes else TorchDirection) for direction in fast.directions)
    check(bilm, fast, LENGTHS[5], 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "dtype"), CHOICES, ids=str)
def test_products_in_several_panels(kind: str | None, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over more than the loops take at a time; weights so small that the network does not amplify errors."""
    allow(kind, monkeypatch)
    options = dataclasses.replace(OPTIONS, dim=1088, n_layers=1)
    bilm = bilm_of(options, random_datasets(options, seed=3, scale=0.02, lstm_projection=True))
    check(bilm, Engine(bilm, dtype), LENGTHS[5], 2e-6 if dtype == torch.float32 else 0.01)


@pytest.mark.parametrize("scale", [1e6, 1e30])
@pytest.mark.parametrize(("kind", "dtype"), CHOICES, ids=str)
def test_large_sums_saturate(
    kind: str | None, dtype: torch.dtype, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """float16 ends at 65,504, e^x at 88."""
    allow(kind, monkeypatch)
    datasets = random_datasets(OPTIONS, seed=3, scale=0.1, lstm_projection=True)
    for name in datasets:
        if name.endswith("/B"):
            datasets[name] = datasets[name] * scale
    bilm = bilm_of(OPTIONS, datasets)
    check(bilm, Engine(bilm, dtype), LENGTHS[3], 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("kind", ["avx512", "avx2", "neon", "compiled cell", "torch alone"])
def test_float32(changes: dict[str, object], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "compiled cell" and kernels.load() is None:
        pytest.skip("the loops were not compiled")
    is_compiled = " " not in kind
    allow(kind if is_compiled else None, monkeypatch)
    if kind == "torch alone":
        monkeypatch.setattr("spacy_elmo.inference.lstm.loops", lambda tensor: None)
    bilm = bilm_with(**changes)
    fast = Engine(bilm)
    assert all(
        isinstance(direction, CompiledDirection if is_compiled else TorchDirection) for direction in fast.directions
    )
    for lengths in LENGTHS:
        check(bilm, fast, lengths, 2e-6)


@pytest.mark.parametrize(("kind", "dtype"), CHOICES, ids=str)
def test_nan_stays_and_stays_alone(kind: str | None, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of weights that is no number, met by one sentence alone."""
    allow(kind, monkeypatch)
    bilm, sentences = bilm_with(), sentences_of([4, 3, 20])
    sentences[1][1] = "odd"
    expected = Engine(bilm, dtype).run(sentences)
    fast = Engine(bilm, dtype)
    encode = fast.words.encoder

    def spoilt(ids: torch.Tensor) -> torch.Tensor:
        vectors = encode(ids)
        vectors[(ids[:, 1:4] == torch.tensor(list(b"odd")) + 1).all(1)] = torch.nan
        return vectors

    fast.words.encoder = spoilt  # type: ignore[assignment]
    got = fast.run(sentences)
    for k in (0, 2):
        assert relative(got[k], expected[k]) <= 1e-6
    width = bilm.options.projection_dim
    assert np.isnan(got[1][1:, 1]).all()
    assert np.isnan(got[1][1:, 2, :width]).all()  # read after it by one direction
    assert not np.isnan(got[1][1:, 0, :width]).any()
    assert not np.isnan(got[1][1:, 2, width:]).any()


def test_torchs_default_device_changes_nothing() -> None:
    bilm, sentences = bilm_with(), sentences_of([2, 5])
    fast = Engine(bilm)
    expected = fast.run(sentences)
    with torch.device("meta"):
        got = fast.run(sentences)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(("kept", "part"), [(0, 100), (5, 20), (40, 1)])
@pytest.mark.parametrize(("kind", "dtype"), CHOICES, ids=str)
def test_words_once_or_often(
    kind: str | None, dtype: torch.dtype, kept: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some products of words kept, the others taken in parts of so many rows."""
    allow(kind, monkeypatch)
    bilm, row_bytes = bilm_with(), 16 * OPTIONS.dim
    monkeypatch.setattr("spacy_elmo.inference.engine.WORD_BYTES", kept * row_bytes)
    monkeypatch.setattr("spacy_elmo.inference.engine.INPUT_BYTES", part * row_bytes)
    lengths = LENGTHS[5]
    often, once = [f"w{k % 43}" for k in range(sum(lengths))], [f"x{k}" for k in range(sum(lengths))]
    words = [pair[k % 3 > 0] for k, pair in enumerate(zip(often, once))]
    sentences = [[words.pop() for _ in range(n)] for n in lengths]
    bound = 2e-6 if dtype == torch.float32 else 0.02
    for got, wanted in zip(Engine(bilm, dtype).run(sentences), run(bilm, sentences)[0], strict=True):
        assert relative(got, wanted) <= bound


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4, 8])
def test_any_number_of_threads(n_threads: int) -> None:
    bilm, sentences = bilm_with(), sentences_of([3, 7, 1] * 50)
    torch.set_num_threads(n_threads)
    results = Engine(bilm).run(sentences)
    assert torch.get_num_threads() == n_threads
    for got, wanted in zip(results, run(bilm, sentences)[0], strict=True):
        assert relative(got, wanted) <= 2e-6


def test_a_call_leaves_nothing_to_the_next() -> None:
    """Their memory is the same."""
    bilm = bilm_with()
    fast, small, large = Engine(bilm), sentences_of([4, 9]), sentences_of(LENGTHS[5])
    before = fast.run(small) + fast.run(large)
    for first, second in zip(before, fast.run(small) + fast.run(large), strict=True):
        assert np.array_equal(first, second)
