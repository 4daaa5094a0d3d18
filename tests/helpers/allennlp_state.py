"""A state_dict as AllenNLP's Elmo has it, made from the official file's datasets the way its loader does."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Datasets = Mapping[str, npt.NDArray[np.generic]]


def allennlp_state(datasets: Datasets, mixes: list[list[float]], gamma: float = 1.0) -> dict[str, Tensor]:
    state: dict[str, npt.NDArray[np.generic]] = {}
    encoder = "_elmo_lstm._token_embedder."
    embedding = datasets["char_embed"]
    state[f"{encoder}_char_embedding_weights"] = np.concatenate([np.zeros_like(embedding[:1]), embedding])
    for i in range(sum(name.startswith("CNN/W") for name in datasets)):
        state[f"{encoder}char_conv_{i}.weight"] = datasets[f"CNN/W_cnn_{i}"][0].transpose(2, 1, 0)
        state[f"{encoder}char_conv_{i}.bias"] = datasets[f"CNN/b_cnn_{i}"]
    for k in range(sum(name.startswith("CNN_high") and name.endswith("W_carry") for name in datasets)):
        transform, carry = datasets[f"CNN_high_{k}/W_transform"].T, -datasets[f"CNN_high_{k}/W_carry"].T
        state[f"{encoder}_highways._layers.{k}.weight"] = np.concatenate([transform, carry])
        transform, carry = datasets[f"CNN_high_{k}/b_transform"], -datasets[f"CNN_high_{k}/b_carry"]
        state[f"{encoder}_highways._layers.{k}.bias"] = np.concatenate([transform, carry])
    state[f"{encoder}_projection.weight"] = datasets["CNN_proj/W_proj"].T
    state[f"{encoder}_projection.bias"] = datasets["CNN_proj/b_proj"]
    for d, direction in enumerate(("forward", "backward")):
        for k in range(sum(name.startswith("RNN_0") and name.endswith("W_0") for name in datasets)):
            name, cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{k}/LSTMCell/", f"_elmo_lstm._elmo_lstm.{direction}_layer_{k}."
            weights, bias = datasets[f"{name}W_0"].T, datasets[f"{name}B"].copy()
            size, width = len(bias) // 4, weights.shape[1] // 2
            bias[2 * size : 3 * size] += 1
            # their order is input, forget, memory, output; the file's is input, memory, forget, output
            order = np.concatenate([np.arange(4 * size).reshape(4, size)[gate] for gate in (0, 2, 1, 3)])
            state[f"{cell}input_linearity.weight"] = weights[order, :width]
            state[f"{cell}state_linearity.weight"] = weights[order, width:]
            state[f"{cell}state_linearity.bias"] = bias[order]
            state[f"{cell}state_projection.weight"] = datasets[f"{name}W_P_0"].T
    for k, parameters in enumerate(mixes):
        for layer, value in enumerate(parameters):
            state[f"scalar_mix_{k}.scalar_parameters.{layer}"] = np.array([value], np.float32)
        state[f"scalar_mix_{k}.gamma"] = np.array([gamma], np.float32)
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in state.items()}
