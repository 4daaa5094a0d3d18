"""Each clip on its own tensor, with values that it really cuts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from bilm_cases import Case, case_of, character_ids, largest_difference, random_datasets, run

from spacy_elmo.formats import BiLMOptions

PLAIN = BiLMOptions(
    char_dim=3,
    filters=((1, 4), (3, 6)),
    n_highway=1,
    activation="relu",
    max_characters=12,
    dim=9,
    projection_dim=5,
    n_layers=2,
    cell_clip=None,
    proj_clip=None,
    use_skip_connections=True,
)
SENTENCE = ["Stick", "to", "the", "river", "bank", ",", "please", "."]
BOUND = 0.25


def case_with(**clips: float | None) -> Case:
    options = dataclasses.replace(PLAIN, **clips)
    return case_of(options, random_datasets(options, seed=3, scale=0.6))


def states(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The module's states h and c after each step, (layers, 2, steps, width), in reading order."""
    with torch.no_grad():
        begin, end = case.bilm.boundary[:1], case.bilm.boundary[1:]
        ids = torch.cat([begin, character_ids([SENTENCE], case.bilm.options)[0], end])
        x = case.bilm.char_cnn(ids)
        both = torch.stack([x, x.flip(0)])[:, :, None]
        _, hidden, cells = case.bilm.lstm.scan(both, case.bilm.lstm.zero_state(1))
    return torch.stack(hidden)[:, :, :, 0].numpy(), torch.stack(cells)[:, :, :, 0].numpy()


def at_bound(values: np.ndarray, bound: float = BOUND) -> float:
    """The share of values that lie exactly at the bound."""
    return float((np.abs(values) == bound).mean())


def test_the_values_are_larger_where_nothing_is_clipped() -> None:
    hidden, cells = states(case_with())
    assert np.abs(hidden).max() > 2 * BOUND
    assert np.abs(cells).max() > 2 * BOUND
    assert at_bound(hidden) == at_bound(cells) == 0


def test_cell_clip_bounds_the_cells_alone() -> None:
    case = case_with(cell_clip=BOUND)
    hidden, cells = states(case)
    expected = case.reference.run(SENTENCE)
    assert np.abs(cells).max() == BOUND
    assert at_bound(cells) > 0.1
    assert np.abs(hidden).max() > BOUND
    assert at_bound(hidden) == 0
    assert at_bound(expected.cells) == at_bound(cells)
    assert largest_difference(cells, expected.cells) <= 1e-12
    assert largest_difference(hidden, expected.hidden) <= 1e-12


def test_proj_clip_bounds_the_projections_alone() -> None:
    case = case_with(proj_clip=BOUND)
    hidden, cells = states(case)
    expected = case.reference.run(SENTENCE)
    assert np.abs(hidden).max() == BOUND
    assert at_bound(hidden) > 0.1
    assert np.abs(cells).max() > BOUND
    assert at_bound(cells) == 0
    assert at_bound(expected.hidden) == at_bound(hidden)
    assert largest_difference(hidden, expected.hidden) <= 1e-12
    assert largest_difference(cells, expected.cells) <= 1e-12


@pytest.mark.parametrize(
    ("name", "bound"), [("cell_clip", BOUND), ("proj_clip", BOUND), ("cell_clip", 0.01), ("proj_clip", 0.01)]
)
def test_layers(name: str, bound: float) -> None:
    case = case_with(**{name: bound})
    (layers,), _ = run(case.bilm, [SENTENCE])
    (free,), _ = run(case_with().bilm, [SENTENCE])
    assert largest_difference(layers, case.reference.run(SENTENCE).layers) <= 1e-12
    assert largest_difference(layers[0], free[0]) == 0
    assert largest_difference(layers[1], free[1]) > 0.1
    assert largest_difference(layers[2], free[2]) > 0.1


def test_the_skip_connection_is_added_after_the_clip() -> None:
    (layers,), _ = run(case_with(proj_clip=BOUND).bilm, [SENTENCE])
    assert np.abs(layers[1]).max() == BOUND
    assert BOUND < np.abs(layers[2]).max() <= 2 * BOUND


def test_proj_clip_does_nothing_without_a_projection() -> None:
    clipped = dataclasses.replace(PLAIN, dim=5, proj_clip=0.01)
    datasets = random_datasets(clipped, scale=0.6)
    (layers,), _ = run(case_of(clipped, datasets).bilm, [SENTENCE])
    (free,), _ = run(case_of(dataclasses.replace(clipped, proj_clip=None), datasets).bilm, [SENTENCE])
    assert np.abs(layers[1]).max() > 0.01
    assert largest_difference(layers, free) == 0


def test_clips_that_do_not_bind_change_nothing() -> None:
    (layers,), _ = run(case_with(cell_clip=50.0, proj_clip=50.0).bilm, [SENTENCE])
    (free,), _ = run(case_with().bilm, [SENTENCE])
    assert largest_difference(layers, free) == 0
