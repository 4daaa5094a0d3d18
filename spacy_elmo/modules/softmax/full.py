"""The biLM's usual output layer, and its loss over all words. Both directions share one."""

import math

import torch
from torch import Tensor, nn

# Rows of logits computed at a time: 64 x 50,000 float32 are 13 MB, which fit in the last-level cache.
BLOCK_ROWS = 64


class Softmax(nn.Module):
    """The output layer of the full and the sampled softmax: p = softmax(x weight^T + bias).

    The parameters are `weight`, (n_words, projection_dim), and `bias`, (n_words,).

    n_words: size of the vocabulary, which is sorted by falling frequency.
    projection_dim: width of x, the top layer's output in one direction.
    """

    def __init__(self, n_words: int, projection_dim: int) -> None:
        super().__init__()
        self.n_words, self.projection_dim = n_words, projection_dim
        self.weight = nn.Parameter(torch.empty(n_words, projection_dim))
        self.bias = nn.Parameter(torch.zeros(n_words))

    def reset_parameters(
        self, log_probabilities: Tensor | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Initialise the weights with N(0, 1 / projection_dim), as bilm-tf does.

        log_probabilities: *Shape:* (n_words,), initial biases, the logarithms of the words' frequencies; None: zeros.
        generator: source of the random numbers; None: torch's default generator.
        """
        nn.init.normal_(self.weight, 0.0, 1.0 / math.sqrt(self.weight.shape[1]), generator=generator)
        with torch.no_grad():
            self.bias.zero_() if log_probabilities is None else self.bias.copy_(log_probabilities)

    @torch.no_grad()
    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return -log p(target) by the full softmax, in nats. It is not differentiable.

        x: *Shape:* (rows, projection_dim).
        targets: *Shape:* (rows,), word ids.

        Returns *Shape:* (rows,), of the type of x.
        """
        losses = torch.empty(len(x), dtype=x.dtype)
        buffer = x.new_empty(min(BLOCK_ROWS, len(x)), len(self.bias))
        for start in range(0, len(x), BLOCK_ROWS):
            rows, target = x[start : start + BLOCK_ROWS], targets[start : start + BLOCK_ROWS]
            logits = torch.addmm(self.bias, rows, self.weight.t(), out=buffer[: len(rows)])
            target_logits = logits.gather(1, target[:, None])[:, 0]
            highest = logits.amax(1)
            # In place, since the block is in the cache: twice as fast as F.cross_entropy (measured).
            total = logits.sub_(highest[:, None]).exp_().sum(1)
            losses[start : start + BLOCK_ROWS] = total.log_() + highest - target_logits
        return losses
