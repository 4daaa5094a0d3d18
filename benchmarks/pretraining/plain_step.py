"""The training step as one writes it first: torch's own modules and autograd, without clipping.

The network is ours but for the clips: the same sizes, skip connections, sampled softmax and weights, so that the first
step's loss is the same.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spacy_elmo.modules import BiLM
from spacy_elmo.modules.char_cnn import Highway
from spacy_elmo.modules.lstm import LstmLayer
from spacy_elmo.modules.lstm_cell import FORGET_BIAS
from spacy_elmo.modules.softmax import LogUniform, Softmax
from spacy_elmo.pretraining.step import Batch

State = list[tuple[Tensor, Tensor]]


class PlainModel(nn.Module):
    """Character encoder on distinct words; an nn.LSTM for each direction and layer; the softmax's rows embedded."""

    def __init__(self, bilm: BiLM, softmax: Softmax) -> None:
        super().__init__()
        options, encoder = bilm.options, bilm.char_cnn
        self.relu = options.activation == "relu"
        self.skip, self.n_layers = options.use_skip_connections, options.n_layers
        self.embedding = nn.Embedding.from_pretrained(encoder.embedding.weight.detach().clone(), False, 0)
        self.convolutions = nn.ModuleList(nn.Conv1d(options.char_dim, n, width) for width, n in options.filters)
        self.convolutions.load_state_dict(encoder.convolutions.state_dict())
        width = options.n_filters
        self.carries = nn.ModuleList(nn.Linear(width, width) for _ in encoder.highways)
        self.transforms = nn.ModuleList(nn.Linear(width, width) for _ in encoder.highways)
        for k, highway in enumerate(encoder.highways):
            assert isinstance(highway, Highway)
            self.carries[k].load_state_dict(highway.carry.state_dict())
            self.transforms[k].load_state_dict(highway.transform.state_dict())
        self.projection = nn.Linear(width, options.projection_dim)
        if encoder.projection is None:
            raise SystemExit("the plain step has a projection behind the highways: choose another --projection")
        self.projection.load_state_dict(encoder.projection.state_dict())
        self.lstms = nn.ModuleList(_lstm(layer, d) for d in (0, 1) for layer in bilm.lstm.layers)
        self.weight = nn.Embedding.from_pretrained(softmax.weight.detach().clone(), freeze=False, sparse=True)
        self.bias = nn.Embedding.from_pretrained(softmax.bias.detach()[:, None].clone(), freeze=False, sparse=True)

    def encode(self, characters: Tensor) -> Tensor:
        """characters: *Shape:* (words, characters); returns (words, projection_dim)."""
        x = self.embedding(characters).transpose(1, 2)
        x = torch.cat([convolution(x).amax(2) for convolution in self.convolutions], 1)
        x = torch.relu(x) if self.relu else torch.tanh(x)
        for carry, transform in zip(self.carries, self.transforms):
            gate = torch.sigmoid(carry(x))
            x = gate * torch.relu(transform(x)) + (1 - gate) * x
        projected: Tensor = self.projection(x)
        return projected

    def read(self, x: Tensor, direction: int, state: State) -> tuple[Tensor, State]:
        """x: *Shape:* (steps, streams, projection_dim); returns the top layer's output and the state behind."""
        after = []
        for k in range(self.n_layers):
            h, end = self.lstms[direction * self.n_layers + k](x, state[k])
            after.append((end[0].detach(), end[1].detach()))
            x = h + x if k > 0 and self.skip else h
        return x, after

    def loss(self, x: Tensor, targets: Tensor, sample: Tensor, of_sample: Tensor, of_targets: Tensor) -> Tensor:
        """Cross entropy over [target; negatives]. x: *Shape:* (rows, projection_dim); log expected counts: of_..."""
        true = (x * self.weight(targets)).sum(1) + self.bias(targets)[:, 0] - of_targets
        negative = x @ self.weight(sample).t() + (self.bias(sample)[:, 0] - of_sample)
        place = torch.searchsorted(sample, targets).clamp_(max=len(sample) - 1)
        rows = torch.nonzero(sample[place] == targets)[:, 0]
        negative[rows, place[rows]] = float("-inf")
        logits = torch.cat([true[:, None].to(negative.dtype), negative], 1)
        return F.cross_entropy(logits, torch.zeros_like(targets), reduction="sum")


def _lstm(layer: nn.Module, direction: int) -> nn.LSTM:
    """torch's gates stand in the order i, f, j, o."""
    assert isinstance(layer, LstmLayer)
    assert layer.projection is not None, "the plain step has projections: --projection below --dim"
    _, width, four_dim = layer.input_weight.shape
    dim = four_dim // 4
    i, j, f, o = torch.arange(four_dim).chunk(4)
    order = torch.cat([i, f, j, o])
    lstm = nn.LSTM(width, dim, proj_size=layer.projection.shape[2])
    bias = layer.bias.detach()[direction].clone()
    bias[f] += FORGET_BIAS
    lstm.load_state_dict(
        {
            "weight_ih_l0": layer.input_weight.detach()[direction].t()[order],
            "weight_hh_l0": layer.recurrent_weight.detach()[direction].t()[order],
            "bias_ih_l0": bias[order],
            "bias_hh_l0": torch.zeros(four_dim),
            "weight_hr_l0": layer.projection.detach()[direction].t(),
        }
    )
    return lstm


class PlainStep:
    """Calls give the mean loss and update the weights."""

    def __init__(self, bilm: BiLM, softmax: Softmax, negatives: int, streams: int, autocast: bool, rate: float) -> None:
        self.model, self.autocast = PlainModel(bilm, softmax), autocast
        self.sampler = LogUniform(len(softmax.bias), negatives)
        sparse = [self.model.weight.weight, self.model.bias.weight]
        dense = [p for p in self.model.parameters() if not any(p is other for other in sparse)]
        self.optimizers = [torch.optim.Adam(dense, lr=rate), torch.optim.SparseAdam(sparse, lr=rate)]
        options = bilm.options
        zero = (torch.zeros(1, streams, options.projection_dim), torch.zeros(1, streams, options.dim))
        self.states = [[zero] * options.n_layers for _ in (0, 1)]

    def __call__(self, batch: Batch, seed: int) -> float:
        sample, tries = self.sampler.draw(torch.Generator().manual_seed(seed))
        of_sample = self.sampler.log_expected(sample, tries)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        total = torch.zeros(())
        mode: AbstractContextManager[Any] = torch.autocast("cpu", torch.bfloat16) if self.autocast else nullcontext()
        with mode:
            encoded = self.model.encode(batch.characters)
            for d in (0, 1):
                top, self.states[d] = self.model.read(F.embedding(batch.inputs[d], encoded), d, self.states[d])
                targets = batch.targets[d].reshape(-1)
                of_targets = self.sampler.log_expected(targets, tries)
                total = total + self.model.loss(top.flatten(0, 1), targets, sample, of_sample, of_targets)
        loss = total / batch.targets.numel()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def close(self) -> None:
        """Nothing to end."""
