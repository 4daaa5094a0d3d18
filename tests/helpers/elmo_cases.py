"""What the tests of the AllenNLP-compatible module share."""

import numpy as np
import torch
from torch import Tensor

SENTENCES = [["The", "sentence", "."], ["ELMo", "helps", "disambiguate", "ELMo", "from", "Elmo", "."]]
TOP = [-1e10, -1e10, 1.0]


def close(got: Tensor, expected: object, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=tolerance)  # type: ignore[arg-type]


def places(sentences: list[list[str]], vocabulary: list[str]) -> Tensor:
    """Places in the vocabulary, 1000 for other words, 0 for padding."""
    longest = max(map(len, sentences))
    rows = [[vocabulary.index(word) if word in vocabulary else 1000 for word in words] for words in sentences]
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])
