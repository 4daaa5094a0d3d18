"""Character CNN: from the characters of a word to its vector, which does not depend on the context."""

import math

import torch
from torch import Tensor, nn

from ..formats.options import BiLMOptions
from .convolutions import N_IDS, Convolutions
from .highway import Highway
from .matmul import linear


class CharCnn(nn.Module):
    """Character embedding, convolutions, maximum over positions, activation, highway layers and projection.

    options: the biLM's sizes.
    char_projection: whether there is a projection after the highway layers; None: only if n_filters != projection_dim,
        as in the files of bilm-tf.
    """

    def __init__(self, options: BiLMOptions, char_projection: bool | None = None) -> None:
        super().__init__()
        if char_projection is None:
            char_projection = options.has_char_projection
        self.options = options
        self.embedding = nn.Embedding(N_IDS, options.char_dim, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(options.char_dim, n, width) for width, n in options.filters)
        self.highways = nn.ModuleList(Highway(options.n_filters) for _ in range(options.n_highway))
        self.projection = nn.Linear(options.n_filters, options.projection_dim) if char_projection else None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise as bilm-tf does, but filters before relu with a range of ±0.1, which is twice bilm-tf's.

        generator: source of the random numbers; None: torch's default generator.
        """
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0, generator=generator)
        with torch.no_grad():
            self.embedding.weight[0].zero_()
        for convolution, (width, _) in zip(self.convolutions, self.options.filters):
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            if self.options.activation == "relu":
                nn.init.uniform_(convolution.weight, -0.1, 0.1, generator=generator)
            else:
                std = math.sqrt(1.0 / (width * self.options.char_dim))
                nn.init.normal_(convolution.weight, 0.0, std, generator=generator)
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.reset_parameters(generator)
        if self.projection is not None:
            std = math.sqrt(1.0 / self.options.n_filters)
            nn.init.normal_(self.projection.weight, 0.0, std, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Encode words.

        ids: *Shape:* (words, characters), character ids from 1 to 261, or 0 for the mask.
        matmul_dtype: type of the matrix multiplications of the highway layers and the projection; None: the type of
            the weights.

        Returns *Shape:* (words, projection_dim), of the type of the weights.
        """
        if len(ids) == 0:
            return self.embedding.weight.new_zeros(0, self.options.projection_dim)
        return self.project(self.pool(ids), matmul_dtype)

    def project(self, x: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Apply the highway layers and the projection.

        x: *Shape:* (words, n_filters), as `pool` returns it.
        matmul_dtype: type of the matrix multiplications; None: the type of x.

        Returns *Shape:* (words, projection_dim), or (words, n_filters) if there is no projection.
        """
        for highway in self.highways:
            x = highway(x, matmul_dtype)
        return x if self.projection is None else linear(x, self.projection, matmul_dtype)

    def pool(self, ids: Tensor) -> Tensor:
        """Embed and convolve characters, and apply the maximum over positions and the activation.

        ids: *Shape:* (words, characters), character ids.

        Returns *Shape:* (words, n_filters).
        """
        # attributes and not get_parameter: torch.func and parametrizations put tensors in the place of parameters
        filters = [(c.weight, c.bias) for c in self.convolutions if isinstance(c, nn.Conv1d) and c.bias is not None]
        return Convolutions(self.options, self.embedding.weight, filters).pool(ids)
