"""What AllenNLP's Elmo saved loads; so does our own."""

import io
from pathlib import Path

import pytest
import torch
from allennlp_state import allennlp_state
from golden_files import GOLDEN_NAMES, datasets_in
from torch import nn

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.allennlp.elmo import from_allennlp

SENTENCES = [["We", "sat", "on", "the", "bank", "."], ["naïve", "東京"]]


def files(golden: Path, name: str) -> tuple[Path, Path]:
    return golden / name / "options.json", golden / name / "weights.hdf5"


def scrambled(golden: Path, name: str, outputs: int = 2) -> Elmo:
    """An Elmo of the right sizes with other weights."""
    elmo = Elmo(*files(golden, name), outputs, dropout=0.0)
    with torch.no_grad():
        for parameter in elmo.parameters():
            parameter.add_(torch.rand_like(parameter))
    return elmo


@pytest.mark.parametrize("name", GOLDEN_NAMES)
@pytest.mark.parametrize("prefix", ["", "embedder.elmo."])
def test_allennlps_state(golden: Path, name: str, prefix: str) -> None:
    layers = 3 if name == "random_a" else 4
    mixes = [[0.5, -1.0, 2.0, 0.1][:layers], [0.0] * layers]
    theirs = allennlp_state(datasets_in(golden / name / "weights.hdf5"), mixes, gamma=1.5)
    elmo = scrambled(golden, name)
    module = nn.ModuleDict({"embedder": nn.ModuleDict({"elmo": elmo})}) if prefix else elmo
    state = {prefix + key: tensor for key, tensor in theirs.items()}
    keys = list(state)
    result = module.load_state_dict(state)
    assert not result.missing_keys
    assert not result.unexpected_keys
    assert list(state) == keys  # the user's dict is as it was
    expected = Elmo(*files(golden, name), 1, dropout=0.0, scalar_mix_parameters=mixes[0])
    ids = batch_to_ids(SENTENCES)
    with torch.no_grad():
        got, plain = elmo(ids)["elmo_representations"], expected(ids)["elmo_representations"][0]
    torch.testing.assert_close(got[0], 1.5 * plain, rtol=0, atol=1e-5)
    uniform = Elmo(*files(golden, name), 1, dropout=0.0)(ids)["elmo_representations"][0]
    torch.testing.assert_close(got[1], 1.5 * uniform, rtol=0, atol=1e-5)


def test_with_their_word_embedding_and_boundary_buffers(golden: Path) -> None:
    theirs = allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)
    theirs["_elmo_lstm._word_embedding.weight"] = torch.zeros(7, 16)
    theirs["_elmo_lstm._token_embedder._beginning_of_sentence_characters"] = torch.zeros(50)
    theirs["_elmo_lstm._token_embedder._end_of_sentence_characters"] = torch.zeros(50)
    elmo = Elmo(*files(golden, "random_a"), 2, vocab_to_cache=["pad", "We", "bank"])
    elmo.load_state_dict(theirs)


def test_what_does_not_fit_is_named(golden: Path) -> None:
    theirs = allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)
    elmo = scrambled(golden, "random_a")
    missing = {key: tensor for key, tensor in theirs.items() if "char_conv_1.bias" not in key}
    with pytest.raises(RuntimeError, match=r"Missing key.*_elmo_lstm\.bilm\.char_cnn\.convolutions\.1\.bias"):
        elmo.load_state_dict(missing)
    one_direction = {key: tensor for key, tensor in theirs.items() if "backward_layer_0.input" not in key}
    with pytest.raises(RuntimeError, match=r"forward_layer_0\.input_linearity\.weight"):
        elmo.load_state_dict(one_direction)
    for part in ("input_linearity.weight", "state_linearity.bias", "state_projection.weight"):
        name = f"_elmo_lstm._elmo_lstm.backward_layer_0.{part}"
        with pytest.raises(RuntimeError, match=rf"(?s)Error\(s\) in loading.*backward_layer_0\.{part}"):
            elmo.load_state_dict(theirs | {name: theirs[name][..., :-4]})
    with pytest.raises(RuntimeError, match="size mismatch"):
        elmo.load_state_dict(theirs | {"scalar_mix_0.scalar_parameters.3": torch.zeros(1)})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*other"):
        elmo.load_state_dict(theirs | {"other": torch.zeros(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        scrambled(golden, "random_b").load_state_dict(theirs, strict=False)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (0,), (7,), (7, 3), (2, 2, 2)])
@pytest.mark.parametrize(
    "part",
    [
        "_elmo_lstm._elmo_lstm.{}_layer_0.input_linearity.weight",
        "_elmo_lstm._elmo_lstm.{}_layer_1.state_linearity.bias",
        "_elmo_lstm._elmo_lstm.{}_layer_1.state_projection.weight",
        "_elmo_lstm._token_embedder._highways._layers.0.weight",
        "_elmo_lstm._token_embedder._highways._layers.1.bias",
        "_elmo_lstm._token_embedder._projection.weight",
        "_elmo_lstm._token_embedder._char_embedding_weights",
        "scalar_mix_0.scalar_parameters.1",
        "scalar_mix_1.gamma",
    ],
)
def test_misshapen_tensors_are_torchs_errors(golden: Path, part: str, shape: tuple[int, ...]) -> None:
    theirs = allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)
    wrong = {part.format(direction): torch.zeros(shape) for direction in ("forward", "backward")}
    assert set(wrong) <= set(theirs)
    if part.startswith("scalar_mix") and shape == ():
        return  # one value is one value
    with pytest.raises(RuntimeError, match=r"Error\(s\) in loading state_dict for Elmo"):
        scrambled(golden, "random_a").load_state_dict(theirs | wrong)


def test_a_gap_in_a_mix_is_not_closed(golden: Path) -> None:
    theirs = allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)
    del theirs["scalar_mix_1.scalar_parameters.1"]
    with pytest.raises(RuntimeError, match=r"Missing key.*scalar_mix_1\.w"):
        scrambled(golden, "random_a").load_state_dict(theirs | {"scalar_mix_1.scalar_parameters.2": torch.zeros(2)})


def test_many_layers_in_any_order() -> None:
    """The numbers in the names are numbers: layer 2 comes before layer 10."""
    state = {f"m.scalar_mix_0.scalar_parameters.{k}": torch.tensor([float(k)]) for k in reversed(range(12))}
    from_allennlp(state, "m.", ours_inside=True)
    assert list(state) == ["m.scalar_mix_0.w"]
    assert state["m.scalar_mix_0.w"].tolist() == [float(k) for k in range(12)]


class Foreign(nn.Module):
    """A biLM with AllenNLP's interface, and its names."""

    num_layers = 3

    def __init__(self) -> None:
        super().__init__()
        self._token_embedder = nn.ModuleDict({"char_conv_0": nn.Conv1d(2, 2, 1), "_projection": nn.Linear(2, 2)})
        self._elmo_lstm = nn.ModuleDict({"forward_layer_0": nn.ModuleDict({"input_linearity": nn.Linear(2, 4)})})
        self._word_embedding = nn.Embedding(3, 2)

    def get_output_dim(self) -> int:
        return 4


def test_the_state_of_a_module_with_allennlps_names() -> None:
    elmo, other = (Elmo(None, None, 2, module=Foreign()) for _ in range(2))
    other.load_state_dict(elmo.state_dict())
    for a, b in zip(elmo.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    theirs = {name: tensor for name, tensor in elmo.state_dict().items() if not name.endswith(".w")}
    theirs |= {f"scalar_mix_{k}.scalar_parameters.{j}": torch.tensor([float(j)]) for k in range(2) for j in range(3)}
    other.load_state_dict(theirs)
    assert other.state_dict()["scalar_mix_1.w"].tolist() == [0.0, 1.0, 2.0]


def test_our_own_state(golden: Path) -> None:
    elmo, other = scrambled(golden, "random_a"), scrambled(golden, "random_a")
    file = io.BytesIO()
    torch.save(elmo.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    ids = batch_to_ids(SENTENCES)
    for a, b in zip(elmo(ids)["elmo_representations"], other(ids)["elmo_representations"]):
        assert torch.equal(a, b)
