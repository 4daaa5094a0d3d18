"""What the tests of the AllenNLP-compatible module share."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spacy_elmo import batch_to_ids

SENTENCES = [["The", "sentence", "."], ["ELMo", "helps", "disambiguate", "ELMo", "from", "Elmo", "."]]
TOP = [-1e10, -1e10, 1.0]


IDS = batch_to_ids(SENTENCES)


def mix(elmo: nn.Module, ids: Tensor = IDS, words: Tensor | None = None) -> Tensor:
    """The first mix that a module returns."""
    result: Tensor = elmo(ids, words)["elmo_representations"][0]
    return result


def close(got: Tensor, expected: Any, tolerance: float = 1e-5) -> None:
    expected = expected.detach() if isinstance(expected, Tensor) else expected
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=tolerance)


def places(sentences: list[list[str]], vocabulary: list[str]) -> Tensor:
    """Places in the vocabulary, 1000 for other words, 0 for padding."""
    longest = max(map(len, sentences))
    rows = [[vocabulary.index(word) if word in vocabulary else 1000 for word in words] for words in sentences]
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])
