"""A biLM that a package brings, by its name: in all commands, and in Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
from bilm_package import install_bilm, uninstall_all
from commands import run
from embedded_case import TEXT, model_of
from spacy.tokens import Doc, DocBin
from thinc.api import Config

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import ElmoError, SettingsError
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.modules import loading

NAME, WORDS = "en_midi", ["the", "dog", "sat", "."]
SENSES = "the\t\t\t-\nbank\tbank\tn\triver\n\na\t\t\t-\nbank\tbank\tn\tmoney\n"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the package, whose files are in ./files too; the working directory has texts."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf8")
    Path("senses.tsv").write_text(SENSES, encoding="utf8")
    vocab = spacy.blank("en").vocab
    DocBin(docs=[Doc(vocab, words=["a", "cat"], tags=["D", "N"])] * 3).to_disk("tags.spacy")
    model_of().save(tmp_path / "files")
    return install_bilm(monkeypatch, tmp_path, NAME, tmp_path / "files")


def pipeline(bilm: str) -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": bilm}})
    return nlp


def test_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ElmoEmbedder("files").embed_sentence(WORDS)
    np.testing.assert_array_equal(ElmoEmbedder(NAME).embed_sentence(WORDS), expected)
    nlp = pipeline(NAME)
    vectors = nlp(Doc(nlp.vocab, words=WORDS))._.elmo_layers
    other = pipeline("files")
    np.testing.assert_array_equal(vectors, other(Doc(other.vocab, words=WORDS))._.elmo_layers)
    assert nlp.config["components"]["elmo"]["model"]["bilm"] == NAME
    nlp.to_disk("saved")
    uninstall_all(monkeypatch)  # a saved pipeline has its biLM
    nlp = spacy.load("saved")
    assert nlp.config["components"]["elmo"]["model"]["bilm"] == NAME
    np.testing.assert_array_equal(nlp(Doc(nlp.vocab, words=WORDS))._.elmo_layers, vectors)


def test_its_weights_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    read, asked = loading.read_weights, []

    def read_weights(*arguments: object, **named: bool) -> loading.Arrays:
        asked.append(named)
        return read(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "read_weights", read_weights)
    loading.load_arrays(bilm=NAME)
    loading.load_arrays()
    assert asked == [{"trusted": False}, {"trusted": True}]


@pytest.mark.parametrize(
    "command",
    [
        "similar {} text.txt --word the --json",
        "neighbours text.txt --query cat --word cat --model {} --json",
        pytest.param("probe tags.spacy tags.spacy --attr tag --model {} --json", marks=pytest.mark.slow),
        "wsd senses.tsv senses.tsv --model {} --json",
        "evaluate {} text.txt --json",
    ],
)
def test_what_commands_print(command: str) -> None:
    named, expected = (
        run("elmo", *command.format(model).split()).partition("{")[2]  # progress comes before
        for model in (NAME, "files")
    )
    assert named
    assert named == expected.replace('"files"', f'"{NAME}"')


def test_embed() -> None:
    for model in (NAME, "files"):
        run("elmo", "embed", "text.txt", f"{model}.hdf5", "--model", model)
    assert Path(f"{NAME}.hdf5").read_bytes() == Path("files.hdf5").read_bytes()


@pytest.mark.slow
def test_pack() -> None:
    packed = []
    for model in (NAME, "files"):
        run("elmo", "pack", model, f"packed_{model}")
        packed.append({path.name: path.read_bytes() for path in Path(f"packed_{model}").iterdir()})
    assert packed[0] == packed[1]
    assert "softmax.hdf5" in packed[0]


def test_info(package: Path) -> None:
    output = run("elmo", "info", NAME)
    for name in ("options.json", "weights.hdf5", "softmax.hdf5"):
        assert str(package / name) in output
        assert sha256_of(package / name) in output
    assert output.count(f"{NAME}, of an installed package") == 1
    assert output.count(f"the sizes of {NAME}") == 1


def test_info_of_a_pipeline(package: Path) -> None:
    pipeline(NAME).to_disk("same")
    model_of(seed=3).save("other")
    pipeline("other").to_disk("differs")
    Path(NAME).mkdir()  # hides the name, and not the package
    assert f"model {NAME}, of an installed package" in run("elmo", "info", "same")
    assert f"model the sizes of {NAME}" in run("elmo", "info", "differs")
    (package / "weights.hdf5").write_bytes(b"damaged")
    assert f"model the sizes of {NAME}" in run("elmo", "info", "same")


def test_info_of_a_file_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"{NAME}, of an installed package" in run("elmo", "info", "files")
    install_bilm(monkeypatch, tmp_path / "broken", "en_broken", None, "no_such_module:folder")
    assert f"{NAME}, of an installed package" in run("elmo", "info", "files")
    uninstall_all(monkeypatch)
    assert "of an installed package" not in run("elmo", "info", "files")


def test_configs() -> None:
    run("elmo", "init-config", "--pipeline", "tagger", "--model", NAME, "task.cfg")
    assert Config().from_disk("task.cfg")["components"]["elmo"]["model"]["bilm"] == NAME
    run("elmo", "init-pretrain-config", "tune.cfg", "--train", "text.txt", "--init", NAME)
    config = Config().from_disk("tune.cfg")
    assert (config["paths"]["init"], config["training"]["frozen_tokens"]) == (NAME, 0)


def test_the_card_tells_the_language(package: Path) -> None:
    (package / "README.md").write_text("| language | de |\n", encoding="utf8")
    with pytest.warns(UserWarning, match="trained on the language 'de'"):
        pipeline(NAME)


def test_a_folder_of_that_name_wins() -> None:
    model_of(seed=3).save(NAME)
    shutil.copytree(NAME, "other")
    vectors = ElmoEmbedder(NAME).embed_sentence(WORDS)
    np.testing.assert_array_equal(vectors, ElmoEmbedder("other").embed_sentence(WORDS))
    assert (vectors != ElmoEmbedder("files").embed_sentence(WORDS)).any()
    assert f"{NAME}/weights.hdf5" in run("elmo", "info", NAME)


@pytest.mark.parametrize("hides", ["a folder", "a file"])
def test_what_hides_it_is_named(hides: str) -> None:
    Path(NAME).mkdir() if hides == "a folder" else Path(NAME).touch()
    reason = "'en_midi' names no biLM: a file or folder of this name is in the current folder. Rename it, or work"
    with pytest.raises(SettingsError, match=reason):
        pipeline(NAME)("a dog")
    for command in (
        f"embed text.txt out.hdf5 --model {NAME}",
        f"evaluate {NAME} text.txt",
        f"pack {NAME} packed",
        f"init-pretrain-config tune.cfg --train text.txt --init {NAME}",
    ):
        told = " ".join(run("elmo", *command.split(), code=1).split())
        assert "a file or folder of this name is in the current folder" in told, command
    assert not any(Path(name).exists() for name in ("out.hdf5", "packed", "tune.cfg"))


COMMANDS = [
    "embed text.txt vectors.hdf5 --model {}",
    "similar {} text.txt --word the",
    "neighbours text.txt --query cat --word cat --model {}",
    "probe tags.spacy tags.spacy --attr tag --model {}",
    "wsd senses.tsv senses.tsv --model {}",
    "evaluate {} text.txt",
    "info {}",
    "pack {} packed",
    "init-config --pipeline tagger --model {} task.cfg",
    "init-pretrain-config new.cfg --train text.txt --init {}",
    "pretrain tune.cfg out --paths.train text.txt --paths.init {}",
]


def check_refused(*parts: str) -> None:
    """All commands, and what is called in Python, tell the same."""
    Path("tune.cfg").write_text("[paths]\n", encoding="utf8")
    before = sorted(Path().iterdir())
    for command in COMMANDS:
        output = run("elmo", *command.format(NAME).split(), code=1)
        for part in parts:
            assert part.replace(" ", "") in output.replace(" ", ""), command  # messages are wrapped anywhere
    assert sorted(Path().iterdir()) == before
    nlp = pipeline(NAME)  # reads no files
    for use in (lambda: ElmoEmbedder(NAME), lambda: nlp("the dog")):
        with pytest.raises(ElmoError, match=parts[0]):
            use()


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall_all(monkeypatch)
    check_refused("pip install ./packages/en_midi", "spacy-elmo-en-midi")
    with pytest.raises(SettingsError, match="not installed"):
        ElmoEmbedder(NAME)


def test_a_package_that_lacks_its_weights(package: Path) -> None:
    (package / "weights.hdf5").unlink()
    check_refused(r"weights.hdf5 missing", str(package), f"{package.name}:folder", "install it again")


def test_a_package_that_can_not_be_loaded(package: Path) -> None:
    (package / "__init__.py").write_text("raise ImportError('half a package')\n", encoding="utf8")
    check_refused("gives no folder", "half a package", f"{package.name}:folder")


def test_names_of_nothing_tell_of_packages() -> None:
    told = "in an installed package, such as en_midi"
    assert told in run("elmo", "embed", "text.txt", "vectors.hdf5", "--model", "gone", code=1)
    with pytest.raises(SettingsError, match=told):
        ElmoEmbedder("gone")
