"""What AllenNLP's users reach inside the module, and its configurations."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import torch
from elmo_cases import SENTENCES, close
from torch import nn

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.errors import ElmoError, SettingsError


class Params(MutableMapping[str, Any]):
    """AllenNLP's Params in short: a mapping that is not a dict."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    def __getitem__(self, key: str) -> Any:
        return self.params[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.params[key] = value

    def __delitem__(self, key: str) -> None:
        del self.params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)


@pytest.fixture
def files(golden: Path) -> dict[str, Any]:
    folder = golden / "random_a"
    return {"options_file": str(folder / "options.json"), "weight_file": folder / "weights.hdf5"}


@pytest.mark.parametrize("mapping", [dict, Params])
def test_from_params(files: dict[str, Any], mapping: Any) -> None:
    settings = {
        "num_output_representations": 2,
        "requires_grad": True,
        "do_layer_norm": True,
        "dropout": 0,
        "keep_sentence_boundaries": True,
        "scalar_mix_parameters": [0.5, 0.0, -1.0],
        "vocab_to_cache": None,
    }
    params = mapping(files | settings)
    made, same = Elmo.from_params(params), Elmo(**files, **settings)
    assert dict(params) == files | settings
    assert all(parameter.requires_grad for parameter in made._elmo_lstm.parameters())
    ids = batch_to_ids(SENTENCES)
    for got, expected in zip(*(elmo(ids)["elmo_representations"] for elmo in (made, same)), strict=True):
        assert torch.equal(got, expected)
        assert got.shape[1] == max(map(len, SENTENCES)) + 2


def test_from_params_with_a_module(files: dict[str, Any]) -> None:
    module = Elmo(**files, num_output_representations=1)._elmo_lstm.bilm
    params = {"options_file": None, "weight_file": None, "num_output_representations": 1}
    assert Elmo.from_params(params, module=module)._elmo_lstm.bilm is module


def test_a_number_is_a_bool_as_in_allennlp(files: dict[str, Any]) -> None:
    made = Elmo.from_params({**files, "num_output_representations": 1, "requires_grad": 2})
    assert all(parameter.requires_grad is True for parameter in made._elmo_lstm.parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_outputs": 1}, "'num_outputs', which is unknown. Expected some of: options_file, weight_file"),
        ({"num_output_representations": ...}, "lack num_output_representations"),
        ({"options_file": ...}, "lack options_file. Set it, or set it to null for the embedded biLM"),
        ({"num_output_representations": "1"}, "num_output_representations of Elmo is '1'. Expected a whole number"),
        ({"requires_grad": "true"}, "requires_grad of Elmo is 'true'. Expected true or false"),
        ({"dropout": "0.5"}, "dropout of Elmo is '0.5'. Expected a number"),
        ({"dropout": None}, "dropout of Elmo is None"),
        ({"vocab_to_cache": "word"}, "vocab_to_cache of Elmo is 'word'. Expected a list of words"),
        ({"vocab_to_cache": ["pad", 1]}, "vocab_to_cache of Elmo is .*Expected a list of words"),
        ({"vocab_to_cache": 3}, "vocab_to_cache of Elmo is 3. Expected a list of words"),
        ({"scalar_mix_parameters": ["0", "0", "0"]}, "scalar_mix_parameters of Elmo is .*Expected a list of numbers"),
        ({"scalar_mix_parameters": [0.0]}, "scalar_mix_parameters has 1 values. Expected 3"),
        ({"module": {"type": "x"}}, "module of Elmo is .*Expected it as an argument of from_params"),
        ({"options_file": 3}, "options_file of Elmo is 3. Expected a path"),
    ],
)
def test_params_that_can_not_be_used(files: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    given = files | {"num_output_representations": 1} | changes
    with pytest.raises(SettingsError, match=message):
        Elmo.from_params({name: value for name, value in given.items() if value is not ...})


def test_params_that_are_no_mapping() -> None:
    with pytest.raises(SettingsError, match="Expected a mapping"):
        Elmo.from_params(["options_file"])  # type: ignore[arg-type]


def test_scalar_mixes(files: dict[str, Any]) -> None:
    """A list in AllenNLP, whose items are also modules of these names."""
    elmo = Elmo(**files, num_output_representations=3)
    assert elmo._scalar_mixes == [elmo.scalar_mix_0, elmo.scalar_mix_1, elmo.scalar_mix_2]
    assert all(isinstance(mix, nn.Module) for mix in elmo._scalar_mixes)
    names = [name for name in elmo.state_dict() if "mix" in name]
    assert names == [f"scalar_mix_{k}.{name}" for k in range(3) for name in ("w", "gamma")]


def test_reset_states_as_its_users_write_it(files: dict[str, Any]) -> None:
    """The test test_elmo_4D_input of AllenNLP: row k of a tensor with four axes is the batch k from the zero state."""
    elmo = Elmo(**files, num_output_representations=1, dropout=0, stateful=True)
    batches = [[["The", "sentence", "."]], [["1", "2", "3"]], [["50", "60", "The"]]]
    ids = [batch_to_ids(batch) for batch in batches]
    together = elmo(torch.stack(ids, 1))["elmo_representations"][0]
    for k, given in enumerate(ids):
        elmo._elmo_lstm._elmo_lstm.reset_states()
        close(elmo(given)["elmo_representations"][0], together[:, k].detach())
    assert sum("_elmo_lstm._elmo_lstm" in name for name in elmo.state_dict()) == 0


def test_some_rows_go_on(files: dict[str, Any]) -> None:
    """AllenNLP's _EncoderBase.reset_states: `new_state = ~mask * old_state` for each row."""
    elmo = Elmo(**files, num_output_representations=1, dropout=0, stateful=True)
    ids = batch_to_ids([["The", "sentence"], ["ELMo", "helps"]])
    first = elmo(ids)["elmo_representations"][0].detach()
    second = elmo(ids)["elmo_representations"][0].detach()
    assert not torch.allclose(first, second, atol=1e-4)
    elmo.reset_states()
    elmo(ids)
    elmo._elmo_lstm._elmo_lstm.reset_states(torch.tensor([True, False]))
    got = elmo(ids)["elmo_representations"][0]
    close(got[0], first[0])
    close(got[1], second[1])
    with pytest.raises(ElmoError, match=r"has shape \(3,\). Expected a tensor of shape \(2,\)"):
        elmo._elmo_lstm.reset_states(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ElmoError, match=r"has type list. Expected a tensor of shape \(2,\)"):
        elmo._elmo_lstm.reset_states([True, False])  # type: ignore[arg-type]
