"""Operations counted by hand, and those that are known of the original size."""

import pytest

from benchmarks.common.model_sizes import options_of
from benchmarks.speed.operations import encoder_flop, lstm_flop, tokens_at_rate
from spacy_elmo.formats import BiLMOptions


def small(dim: int, n_filters: int, n_highway: int = 1) -> BiLMOptions:
    return BiLMOptions(4, ((1, 2), (3, n_filters - 2)), n_highway, "relu", 10, dim, 3, 2, None, None, True)


def test_original_size() -> None:
    options = options_of("original")
    assert lstm_flop(options) == 2 * 75_497_472  # two directions and layers of (512 + 512) x 16384 and 4096 x 512
    # 8,808,448 in the convolutions, four highway matrices of 2048 x 2048, 2048 x 512
    assert encoder_flop(options) == 2 * (8_808_448 + 16_777_216 + 1_048_576)
    assert round(lstm_flop(options) / 1e6) == 151
    assert round(encoder_flop(options) / 1e6) == 53


def test_lstm_by_hand() -> None:
    assert lstm_flop(small(5, 6)) == 2 * 4 * (6 * 20 + 5 * 3)
    assert lstm_flop(small(3, 6)) == 2 * 4 * (6 * 12)  # no projection where the sizes are the same


def test_encoder_by_hand() -> None:
    # width 1: 10 places, 4 inputs, 2 filters; width 3: 8 places, 12 inputs, 4 filters; highway: two of 6 x 6
    assert encoder_flop(small(5, 6)) == 2 * (10 * 4 * 2 + 8 * 12 * 4 + 2 * 36 + 6 * 3)
    assert encoder_flop(small(5, 3, n_highway=0)) == 2 * (10 * 4 * 2 + 8 * 12 * 1)


def test_limit() -> None:
    options = options_of("original")
    # each word distinct: 204 MFLOP a token; none: 151
    assert tokens_at_rate(options, 10, 10, 204.263424e6) == pytest.approx(1)
    assert tokens_at_rate(options, 1000, 0, 150.994944e9) == pytest.approx(1000)
