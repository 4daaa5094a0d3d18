"""What is measured of the shipped biLMs, on a small one: the same figures as by the package's own commands."""

import json
from pathlib import Path

import pytest
import spacy
from bilm_package import install_bilm
from commands import run
from embedded_case import TEXT, model_of
from spacy.tokens import Doc, DocBin

from scripts.bilms import measure_bilms
from scripts.bilms.measure_bilms import TWEETS, main
from scripts.bilms.measures import bilm_result_of, perplexity, read_text, tag_accuracies
from scripts.shared.corpus_files import TAGGED
from spacy_elmo.errors import CommandError
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.pretraining.language_model import LanguageModel

NAME = "en_midi"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a biLM in ./files and in a package, a text, and the corpora."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf8")
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["a", "cat", "sat"], pos=["DET", "NOUN", "VERB"])] * 3
    for number, path in enumerate([*TAGGED, "corpus/ner/dev.spacy", "corpus/ner_newswire/dev.spacy"]):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        DocBin(docs=docs[: max(1, 4 - number)]).to_disk(path)  # three for tags, then two, then one
    model_of().save(tmp_path / "files")
    install_bilm(monkeypatch, tmp_path, NAME, tmp_path / "files")
    return tmp_path


def evaluated(text: str, *more: str) -> float:
    printed = json.loads(run("elmo", "evaluate", "files", text, "--json", *more))
    mean: float = printed["zero_state"]["mean"]
    return mean


def test_a_packages_bilm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("novels.txt").write_text("the dog\nthe cat\nit sat .\n", encoding="utf8")
    monkeypatch.setattr(measure_bilms, "NOVELS", 2)
    # by its folder, since the command runs in a process that does not know this package
    monkeypatch.setattr(measure_bilms, "tag_accuracies", lambda bilm: [tag_accuracies("files"), bilm])
    main([NAME], Path("text.txt"), Path("novels.txt"))
    record = json.loads(bilm_result_of(folder, NAME).read_text(encoding="utf-8"))
    command = "measure_bilms en_midi --wikipedia text.txt --novels novels.txt"
    assert record["command"] == f"python -m scripts.bilms.{command}"
    result = record["result"]
    assert result["weights"] == sha256_of(Path("files/weights.hdf5"))[:12]
    assert result["bytes"] == {name: Path("files", name).stat().st_size for name in ("weights.hdf5", "softmax.hdf5")}
    found = {name: one["perplexity"] for name, one in result["perplexities"].items()}
    expected = {"wikipedia": evaluated("text.txt"), "novels": evaluated("novels.txt", "--sentences", "2")}
    for name, task in (("newswire", "ner_newswire"), ("tweets", "ner")):
        expected[name] = evaluated(f"corpus/{task}/dev.spacy")
    assert found == pytest.approx(expected, rel=1e-6)
    sizes = {name: one["sentences"] for name, one in result["perplexities"].items()}
    assert sizes == {"wikipedia": 3, "novels": 2, "newswire": 1, "tweets": 2}
    assert result["tags"] == [[1.0] * 4, NAME]  # three layers and their mean; the parts have the same words


def test_a_part_of_a_text() -> None:
    Path("text.txt").write_text("the unheard dog\nsat .\n" + TEXT, encoding="utf8")
    model = LanguageModel.load("files")
    found = perplexity(model, read_text(Path("text.txt"), 2))
    assert found["sentences"] == 2
    assert found["perplexity"] == pytest.approx(evaluated("text.txt", "--sentences", "2"), rel=1e-6)
    assert found["unknown_share"] == pytest.approx(1 / 5)
    assert found["without_unknown"] != found["perplexity"]


def test_a_text_that_is_missing(folder: Path) -> None:
    for texts, option in ((("none.txt", "text.txt"), "wikipedia"), (("text.txt", "."), "novels")):
        with pytest.raises(CommandError, match=rf"is no file.*name it with --vars\.{option} FILE"):
            main([NAME], *map(Path, texts))
    assert not (folder / "results").exists()


def test_one_bad_line_in_a_hundred_is_left_out() -> None:
    docs = [Doc(spacy.blank("en").vocab, words=words) for words in [["the", "dog"]] * 100 + [["ke s", "re y"]]]
    DocBin(docs=docs).to_disk("tweets.spacy")
    text = read_text(Path("tweets.spacy"))
    assert (text.sentences, text.left_out) == ([["the", "dog"]] * 100, 1)
    assert perplexity(LanguageModel.load("files"), text)["left_out"] == 1
    DocBin(docs=docs[2:]).to_disk("tweets.spacy")
    with pytest.raises(CommandError, match=r"lines that can't be used: 1\."):
        read_text(Path("tweets.spacy"))


def test_a_line_that_cannot_be_used() -> None:
    Path("text.txt").write_bytes(TEXT.encode() + b"\xff\n")
    number = len(TEXT.splitlines()) + 1
    expected = rf"text\.txt: lines that can't be used: 1\. The first one: .*line {number}: "
    with pytest.raises(CommandError, match=expected):
        read_text(Path("text.txt"))


def test_a_text_that_is_too_short() -> None:
    Path("text.txt").write_text("the dog\nsat .\n", encoding="utf8")
    with pytest.raises(CommandError, match=r"text\.txt: 2 sentences\. Expected 3 or more"):
        read_text(Path("text.txt"), 3)


def test_names_and_corpora(folder: Path) -> None:
    with pytest.raises(CommandError, match=r"the biLM is 'files'\. Expected one of en_mini, en_midi"):
        main([NAME, "files"], Path("text.txt"), Path("text.txt"))
    TWEETS.unlink()
    with pytest.raises(CommandError, match=r"corpus/ner/dev\.spacy: no such file"):
        main([NAME], Path("text.txt"), Path("text.txt"))
    assert not (folder / "results").exists()
