"""Computes loss and gradients of one batch on a GPU, of both directions at once."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ...modules import BiLM, LstmState
from ...modules.lstm.gpu_scan import GpuWorkspace
from ...modules.lstm.layers import scan_layers
from .dropout import inverted_dropout
from .objective import Scorer
from .step import Batch, Gradients


class GpuStep:
    """Computes what `Workers` computes, in one thread.

    bilm: the network. Its weights are read at each call, and not changed.
    matmul_dtype: type of the matrix multiplications; weights and sums stay float32.
    dropout: share of each LSTM layer's inputs and of the top layer's outputs that is set to 0.
    """

    def __init__(self, bilm: BiLM, matmul_dtype: torch.dtype, dropout: float = 0.0) -> None:
        self.bilm, self.matmul_dtype, self.dropout = bilm, matmul_dtype, dropout
        on_gpu = next(bilm.parameters()).is_cuda
        self.workspaces = [GpuWorkspace() if on_gpu else {} for _ in bilm.lstm.layers]

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def gradients(
        self, batch: Batch, scorer: Scorer, state: LstmState, scale: float, seed: int, frozen: bool = False
    ) -> Gradients:
        """Return the sum of the losses of all predictions, times `scale`, and its gradients.

        batch, scorer, state, scale, seed, frozen: as in `Workers.gradients`.
        """
        drop = inverted_dropout(self.dropout, seed, batch.inputs.device)
        characters, inputs = without_repetitions(batch.characters, batch.inputs)
        with torch.set_grad_enabled(not frozen):
            encoded = self.bilm.char_cnn(characters, self.matmul_dtype)
            outputs, hs, cs = scan_layers(
                self.bilm.options,
                self.bilm.lstm.weights(),
                F.embedding(inputs, encoded),
                state,
                batch.keep,
                drop=drop,
                matmul_dtype=self.matmul_dtype,
                workspaces=self.workspaces,
            )
            top = outputs[-1] if drop is None else drop(outputs[-1])
        of_scorer, parameters = scorer.leaves(), [] if frozen else list(self.bilm.parameters())
        with torch.enable_grad():
            losses = [
                scorer.loss(of_scorer, rows.flatten(0, 1), direction, slice(None), self.matmul_dtype)
                for direction, rows in enumerate(top)
            ]
            loss = torch.stack(losses).sum() * scale
        gradients = torch.autograd.grad(loss, [*of_scorer, *parameters])
        end = LstmState(*(torch.stack([values[:, -1] for values in kind]).detach() for kind in (hs, cs)))
        return Gradients(loss.item(), list(gradients[len(of_scorer) :]), list(gradients[: len(of_scorer)]), end)


def without_repetitions(characters: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return each word once, and the inputs as indices of these words.

    characters: *Shape:* (words, characters), character ids, in which words may be repeated.
    inputs: of any shape, indices of words.
    """
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, characters.shape[1:], generator=generator, device="cpu")
    distinct, index = torch.unique((characters * factors.to(characters.device)).sum(1), return_inverse=True)
    numbers = torch.arange(len(characters), device=characters.device)
    first = torch.full_like(distinct, len(characters)).scatter_reduce_(0, index, numbers, "amin")
    kept = characters[first]
    if not torch.equal(kept[index], characters):  # two words have the same sum
        return characters, inputs
    return kept, index[inputs]
