"""One random call of each loop that training uses. The results are those of one seed, compiled or in torch."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from spacy_elmo import kernels
from spacy_elmo.modules.char_cnn import N_IDS, _convolve_and_pool, character_table, maxima
from spacy_elmo.modules.lstm import lstm_scan
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, LstmState, cell_backward, cell_forward
from spacy_elmo.modules.softmax import _to_probabilities
from spacy_elmo.pretraining.optimizers import AdagradRows, AdamRows

from .draws import chance, choice, integer, normal, size, unaligned


def run_cell(g: Generator) -> list[Tensor]:
    """A step of the LSTM cell and its gradients."""
    batch, dim = size(g, 9), integer(g, 1, 140)
    real = torch.bfloat16 if chance(g, 0.5) else torch.float32
    sums, bias, cell_in = normal(g, batch, 4 * dim, dtype=real), normal(g, 4 * dim), normal(g, batch, dim)
    keep = normal(g, batch, 1) if chance(g, 0.5) else None
    d_out, d_cell, clip = normal(g, batch, dim, dtype=real), normal(g, batch, dim), choice(g, None, 0.3, 3.0)
    gates, cell, out = torch.empty_like(sums), torch.empty_like(cell_in), torch.empty_like(d_out)
    cell_forward(sums, gates, bias, cell_in, keep, cell, out, clip)
    d_gates = gates.clone()
    d_cell = cell_backward(d_gates, cell_in, keep, cell, d_out, d_cell, clip)
    return [gates, cell, out, d_gates, d_cell]


def convolve(g: Generator) -> list[Tensor]:
    """Convolutions of characters, with the gradient of the table or without it."""
    words, positions = size(g, 9), integer(g, 1, 60)
    filters = tuple((integer(g, 1, min(9, positions)), integer(g, 1, 140)) for _ in range(integer(g, 1, 3)))
    ids = unaligned(g, torch.randint(0, N_IDS, (words, positions), generator=g))
    embedding = normal(g, N_IDS, integer(g, 1, 5))
    embedding[0] = 0
    weights = [(normal(g, n, embedding.shape[1], width), normal(g, n)) for width, n in filters]
    library = kernels.load()
    lengths = [torch.randint(width, positions + 1, (words,), generator=g) for width, _ in filters]
    if library is None:
        pooled = torch.empty(words, sum(n for _, n in filters))
        for row in range(words):
            characters = [embedding[ids[row, : length[row]]][None] for length in lengths]
            parts = [_convolve_and_pool(x, weight, bias) for x, (weight, bias) in zip(characters, weights)]
            pooled[row] = torch.cat(parts, 1)
        return [pooled]
    tables = [unaligned(g, character_table(embedding, weight)) for weight, _ in weights]
    short, ints = unaligned(g, ids.short()), [unaligned(g, length.int()) for length in lengths]
    with torch.no_grad():
        out = maxima(tables, short, ints, library)
    for table in tables:
        table.requires_grad_()
    again = maxima(tables, short, ints, library)
    again.backward(normal(g, *again.shape))
    torch.testing.assert_close(again.detach(), out, rtol=0, atol=0, equal_nan=True)
    return [out + torch.cat([bias for _, bias in weights])]


def run_softmax(g: Generator) -> list[Tensor]:
    """A block of a sampled softmax."""
    rows, words = size(g, 9), integer(g, 1, 200)
    real = torch.bfloat16 if chance(g, 0.5) else torch.float32
    logits, offset, targets = normal(g, rows, words, dtype=real), normal(g, words), normal(g, rows)
    hits = unaligned(g, torch.randint(-1, words, (rows,), generator=g, dtype=torch.int32))
    losses, d_target = torch.empty_like(targets), torch.empty_like(targets)
    _to_probabilities(logits, offset, targets, hits, losses, d_target)
    return [logits, losses, d_target]


def update_rows(g: Generator) -> list[Tensor]:
    """Adam or Adagrad on some rows of a table."""
    rows, width = integer(g, 1, 30), integer(g, 1, 70)
    table = normal(g, rows, width)
    chosen = torch.randperm(rows, generator=g)[: integer(g, 0, rows)]
    d_rows, step = normal(g, len(chosen), width), integer(g, 1, 5)
    adam = AdamRows(table, 0.9, 0.999) if chance(g, 0.5) else AdagradRows(table, 1.0)
    adam.update(unaligned(g, chosen), d_rows, 0.01, step)
    return [table, *adam.state().values()]


def scan(g: Generator) -> list[Tensor]:
    """A layer over a window of steps with its gradients: on AMX if the sizes are multiples of 64."""
    steps, batch, n_directions = integer(g, 1, 4), integer(g, 1, 40), integer(g, 1, 2)
    unit = 64 if chance(g, 0.7) else 8
    dim, n_in, width = unit * integer(g, 1, 2), unit * integer(g, 1, 2), unit * integer(g, 1, 2)
    has_projection = unit == 64 or chance(g, 0.5)
    width = width if has_projection else dim
    shapes = [(steps, batch, n_in), (n_in, 4 * dim), (width, 4 * dim), (4 * dim,), (dim, width), (batch, width)]
    drawn = [normal(g, n_directions, *shape, scale=0.1).requires_grad_() for shape in (*shapes, (batch, dim))]
    x, w_x, w_h, bias, w_p, h0, c0 = drawn
    keep = (torch.rand(steps, batch, 1, generator=g) > 0.2).float() if chance(g, 0.5) else None
    clips, all_cells = Clips(choice(g, None, 0.5, 3.0), choice(g, None, 0.5, 3.0)), chance(g, 0.5)
    low = torch.bfloat16 if has_projection and chance(g, 0.7) else torch.float32
    weights = LayerWeights(w_x, w_h, bias, w_p if has_projection else None)
    h, c = lstm_scan(x, weights, LstmState(h0, c0), keep, clips, matmul_dtype=low, all_cells=all_cells)
    (h * normal(g, *h.shape)).sum().add((c * normal(g, *c.shape)).sum()).backward()
    return [h.detach(), c.detach()]  # what is near a bound falls on either side, and so do its gradients
