"""The initial weights of a network: the distributions of bilm-tf and TensorFlow, drawn from the generator alone."""

import math

import pytest
import torch
from torch import Tensor

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM


def options(activation: str = "relu") -> BiLMOptions:
    return BiLMOptions(
        char_dim=16,
        filters=((2, 60), (3, 40)),
        n_highway=2,
        activation=activation,
        max_characters=10,
        dim=96,
        projection_dim=32,
        n_layers=2,
        cell_clip=3.0,
        proj_clip=3.0,
        use_skip_connections=True,
    )


def initial(activation: str = "relu", seed: int = 0) -> dict[str, Tensor]:
    bilm = BiLM(options(activation))
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.fill_(9.0)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    return bilm.state_dict()


def is_normal(values: Tensor, std: float) -> bool:
    """Whether about 68 % are within one standard deviation, and a few beyond two."""
    within = float((values.abs() < std).double().mean())
    return (
        abs(float(values.std()) / std - 1) < 0.1 and abs(within - 0.683) < 0.05 and bool((values.abs() > 2 * std).any())
    )


def is_uniform(values: Tensor, bound: float) -> bool:
    """Whether the values fill the range, and have its standard deviation."""
    filled = 0.95 * bound < float(values.abs().max()) <= bound
    return filled and abs(float(values.std()) / (bound / math.sqrt(3)) - 1) < 0.1


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_character_encoder(activation: str) -> None:
    weights = initial(activation)
    embedding = weights["char_cnn.embedding.weight"]
    assert not embedding[0].any()  # the mask
    assert is_uniform(embedding[1:], 1.0)
    for k, width in enumerate((2, 3)):
        convolution = weights[f"char_cnn.convolutions.{k}.weight"]
        if activation == "relu":
            assert is_uniform(convolution, 0.1)
        else:
            assert is_normal(convolution, 1 / math.sqrt(width * 16))
        assert not weights[f"char_cnn.convolutions.{k}.bias"].any()
    for k in range(2):
        for part, bias in (("carry", -2.0), ("transform", 0.0)):
            assert is_normal(weights[f"char_cnn.highways.{k}.{part}.weight"], 0.1)  # 100 filters
            assert (weights[f"char_cnn.highways.{k}.{part}.bias"] == bias).all()
    assert is_normal(weights["char_cnn.projection.weight"], 0.1)
    assert not weights["char_cnn.projection.bias"].any()


def test_lstm() -> None:
    weights = initial()
    for k in range(2):
        # TensorFlow's W_0 has 32 + 32 inputs and 4 * 96 outputs, its projection 96 and 32
        for name in ("input_weight", "recurrent_weight"):
            assert is_uniform(weights[f"lstm.layers.{k}.{name}"], math.sqrt(6 / (64 + 384)))
        assert is_uniform(weights[f"lstm.layers.{k}.projection"], math.sqrt(6 / (96 + 32)))
        assert not weights[f"lstm.layers.{k}.bias"].any()


def test_only_the_generator_decides() -> None:
    one, same, other = ({n: w for n, w in initial(seed=k).items() if not n.endswith("bias")} for k in (0, 0, 1))
    for name, values in one.items():
        assert torch.equal(values, same[name])
        assert not torch.equal(values, other[name])
