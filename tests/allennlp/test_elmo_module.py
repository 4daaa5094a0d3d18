"""The AllenNLP-compatible module: its values and returns."""

from pathlib import Path

import numpy as np
import pytest
import torch
from elmo_cases import SENTENCES, TOP, close
from golden_files import GOLDEN_NAMES, Golden, datasets_in, read_golden, tiny_batches

from spacy_elmo import Elmo, batch_to_ids


@pytest.fixture(scope="module", params=GOLDEN_NAMES)
def reference(request: pytest.FixtureRequest, golden: Path) -> tuple[Golden, tuple[Path, Path]]:
    folder = golden / request.param
    return read_golden(folder), (folder / "options.json", folder / "weights.hdf5")


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


def test_the_snippet_of_its_users(files: tuple[Path, Path]) -> None:
    options_file, weight_file = map(str, files)
    elmo = Elmo(options_file, weight_file, 2, dropout=0)
    sentences = [["First", "sentence", "."], ["Another", "."]]
    character_ids = batch_to_ids(sentences)
    embeddings = elmo(character_ids)
    assert [tuple(x.shape) for x in embeddings["elmo_representations"]] == [(2, 3, 32)] * 2
    assert embeddings["mask"].tolist() == [[True, True, True], [True, True, False]]
    assert elmo.get_output_dim() == 32
    assert not embeddings["elmo_representations"][0][1, 2].any()


@pytest.mark.parametrize("mix", ["plain", "uniform", "layer_norm"])
def test_mixes(reference: tuple[Golden, tuple[Path, Path]], mix: str) -> None:
    golden, files = reference
    attributes = golden.attributes[f"mix/{mix}"]
    parameters = [float(x) for x in attributes["scalar_parameters"]]
    elmo = Elmo(*files, 1, dropout=0, do_layer_norm=mix == "layer_norm", scalar_mix_parameters=parameters)
    elmo.scalar_mix_0.gamma.data.fill_(float(np.ravel(attributes["gamma"])[0]))  # type: ignore[union-attr]
    output = elmo(batch_to_ids(golden.sentences))
    expected = golden.expected[f"mix/{mix}"]
    for row, words in enumerate(golden.sentences):
        close(output["elmo_representations"][0][row, : len(words)], expected[row, : len(words)])
        assert output["mask"][row].sum() == len(words)


def test_zero_state_is_the_default(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    golden, files = reference
    elmo = Elmo(*files, 1, dropout=0)
    for _ in range(2):
        for i, words in enumerate(golden.sentences):
            got = elmo(batch_to_ids([words]))["elmo_representations"][0][0]
            close(got, golden.expected[f"zero_state/{i}"].mean(0))


def test_carried_state(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    golden, files = reference
    elmo = Elmo(*files, 1, dropout=0, stateful=True)
    for _ in range(2):
        for number, batch in enumerate(golden.carry_batches):
            got = elmo(batch_to_ids(batch))["elmo_representations"][0]
            for row, words in enumerate(batch):
                close(got[row, : len(words)], golden.expected[f"carried_state/{number}/{row}"].mean(0))
        elmo.reset_states()


def test_a_carried_state_has_no_gradient(files: tuple[Path, Path]) -> None:
    """The second backward pass ends at the state: its graph was freed by the first one."""
    elmo = Elmo(*files, 1, dropout=0, stateful=True, requires_grad=True)
    for _ in range(2):
        elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].square().sum().backward()
    assert [tensor.requires_grad for tensor in elmo._elmo_lstm._carried.state] == [False, False]


def test_top_layer_of_the_original(tiny_fixture: Path) -> None:
    elmo = Elmo(
        tiny_fixture / "options.json",
        tiny_fixture / "lm_weights.hdf5",
        1,
        dropout=0,
        scalar_mix_parameters=TOP,
        stateful=True,
    )
    for sentences, expected in tiny_batches(tiny_fixture):
        output = elmo(batch_to_ids(sentences))
        assert output["mask"].sum(1).tolist() == [len(words) for words in sentences]
        for row, top in enumerate(expected):
            if top is not None:
                close(output["elmo_representations"][0][row, : len(sentences[row])], top, 2e-6)


def test_token_representations_of_the_original(tiny_fixture: Path) -> None:
    tokens = (tiny_fixture / "vocab_test.txt").read_text(encoding="utf8").strip().split("\n")
    files = tiny_fixture / "options.json", tiny_fixture / "lm_weights.hdf5"
    elmo = Elmo(*files, 1, dropout=0, scalar_mix_parameters=[1.0, -1e10, -1e10])
    output = elmo(batch_to_ids([tokens[k : k + 50] for k in range(0, len(tokens), 50)]))
    vectors = output["elmo_representations"][0][output["mask"]]
    expected = datasets_in(tiny_fixture / "elmo_token_embeddings.hdf5")["embedding"]
    close(vectors[:, :16], expected, 2e-6)
    close(vectors[:, 16:], expected, 2e-6)


def test_sentence_boundaries_can_be_kept(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    files = reference[1]
    ids = batch_to_ids(SENTENCES)
    kept = Elmo(*files, 2, dropout=0, keep_sentence_boundaries=True)(ids)
    plain = Elmo(*files, 1, dropout=0)(ids)
    assert kept["mask"].tolist() == [[True] * 5 + [False] * 4, [True] * 9]
    x, y = kept["elmo_representations"][1], plain["elmo_representations"][0]
    assert x.shape == (2, 9, y.shape[2])
    close(x[0, 1:4], y[0, :3].detach())
    close(x[1, 1:8], y[1].detach())
    assert not x[0, 5:].any()
    for row, position in ((0, 0), (0, 4), (1, 0), (1, 8)):
        assert x[row, position].any()
    four = torch.stack([ids, ids, ids], 1)
    assert Elmo(*files, 1, keep_sentence_boundaries=True)(four)["mask"].shape == (2, 3, 9)


def test_different_sentences_in_four_dimensions(files: tuple[Path, Path]) -> None:
    batches = [SENTENCES, [["1", "2"], [str(k) for k in range(7)]], [[*"1234", "50", "60", "70"], ["The"]]]
    ids = torch.stack([batch_to_ids(batch) for batch in batches], 1)
    elmo = Elmo(*files, 1, dropout=0)
    got = elmo(ids)["elmo_representations"][0]
    for k, batch in enumerate(batches):
        close(got[:, k], elmo(batch_to_ids(batch))["elmo_representations"][0].detach())
