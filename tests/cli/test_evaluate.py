"""`elmo evaluate MODEL TEXT`, through spaCy's own app."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining import scoring
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.scoring import score_rows, score_sentences, score_text, score_unigram, total
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary

OPTIONS = BiLMOptions(3, ((1, 3), (2, 2)), 1, "relu", 20, 6, 4, 2, 3.0, 3.0, True)
WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "dog", "."]
COUNTS = np.array([40, 40, 0, 30, 20, 10, 5, 35])
TEXT = [["the", "cat", "sat", "."], ["the", "newt", "sat"], ["dog"], ["the", "cat", "sat", ".", "the", "dog", "."]]


def model_of(counts: np.ndarray | None = COUNTS, *, uniform: bool = False) -> LanguageModel:
    softmax = Softmax(len(WORDS), OPTIONS.projection_dim)
    softmax.reset_parameters(generator=torch.Generator().manual_seed(0))
    if uniform:
        torch.nn.init.zeros_(softmax.weight)
    return LanguageModel(bilm_of(OPTIONS, random_datasets(OPTIONS)), softmax, Vocabulary(WORDS, counts))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in TEXT), encoding="utf8")
    return path


run = partial(commands.run, "elmo", "evaluate")


def run_json(*arguments: object) -> dict[str, Any]:
    record = json.loads(commands.invoke("elmo", "evaluate", *arguments, "--json").output)
    assert isinstance(record, dict)
    return record


def test_json_holds_what_was_scored(model: Path, text: Path) -> None:
    record = run_json(model, text, "--streams", "2")
    scored = model_of()
    scores = {
        "zero_state": score_text(scored, TEXT),
        "carried_state": total(score_rows(scored, [TEXT[:2], TEXT[2:]])),
        "unigram": score_unigram(scored, TEXT, scored.vocabulary.log_unigram()),
    }
    for name, score in scores.items():
        without = record[name].pop("without_unknown")
        assert record.pop(name) == pytest.approx(score.perplexities._asdict(), rel=1e-6)
        assert without == pytest.approx(score.known_perplexities._asdict(), rel=1e-6)
    assert record == {
        "model": str(model),
        "text": str(text),
        "vocabulary": 8,
        "sentences": 4,
        "tokens": 15,
        "unknown": 1,
        "out_of_vocabulary": pytest.approx(1 / 15),
        "predictions": 19,
        "streams": 2,
        "bad_lines": 0,
    }


def test_the_first_sentences_alone(model: Path, text: Path) -> None:
    record = run_json(model, text, "--sentences", "2")
    assert record["zero_state"]["mean"] == pytest.approx(score_text(model_of(), TEXT[:2]).perplexities.mean, rel=1e-6)


def test_the_table(tmp_path: Path, text: Path) -> None:
    model_of(uniform=True).save(tmp_path / "uniform")
    output = run(tmp_path / "uniform", text)
    assert "4 sentences, 15 tokens, vocabulary 8" in output
    assert "out of vocabulary: 6.67% of the tokens" in output
    assert "19 predictions a direction" in output
    assert "biLM, zero state 8.0 8.0 8.0 biLM, carried state 8.0 8.0 8.0" in output
    assert "biLM, carried state, without <UNK> 8.0 8.0 8.0" in output
    assert "streams: 4" in output  # no more than sentences
    unigram = run_json(tmp_path / "uniform", text)["unigram"]
    assert f"unigram model {unigram['forward']:.1f} {unigram['backward']:.1f} {unigram['mean']:.1f}" in output


def test_no_counts_no_unigram_model(tmp_path: Path, text: Path) -> None:
    model_of(None).save(tmp_path / "model")
    assert "there are no counts" in run(tmp_path / "model", text)
    assert run_json(tmp_path / "model", text)["unigram"] is None


def test_scores_of_each_sentence(model: Path, text: Path, tmp_path: Path) -> None:
    run(model, text, "--per-sentence", tmp_path / "scores.tsv")
    head, *rows = [line.split("\t") for line in (tmp_path / "scores.tsv").read_text(encoding="utf8").splitlines()]
    perplexities = ["perplexity_forward", "perplexity_backward", "perplexity_mean"]
    assert head == ["sentence", "tokens", "loss_forward", "loss_backward", *perplexities, "file", "line"]
    expected = list(score_sentences(model_of(), TEXT))
    assert len(rows) == len(TEXT)
    for number, (row, words, score) in enumerate(zip(rows, TEXT, expected), 1):
        assert row[:2] == [str(number), str(len(words))]
        forward, backward = score.loss
        n = len(words) + 1
        values = [forward, backward, *(math.exp(mean / n) for mean in (forward, backward, (forward + backward) / 2))]
        assert [float(value) for value in row[2:-2]] == pytest.approx(values, rel=1e-6)


def test_a_dash_is_a_stream(model: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = run_json(model, text, "--per-sentence", "scores.tsv")
    arguments = ["elmo", "evaluate", str(model), "-", "--per-sentence", "-", "--json"]
    result = commands.invoke(*arguments, stdin=text.read_text(encoding="utf8"))
    assert result.stdout == Path("scores.tsv").read_text(encoding="utf8").replace(str(text), "standard input")
    assert json.loads(result.stderr)["zero_state"] == expected["zero_state"]
    assert not Path("-").exists()
    empty = commands.invoke(*arguments, stdin="\n", code=1)
    assert "standard input" in empty.stderr
    assert empty.stdout == ""


def test_a_language_and_bad_lines(model: Path, tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_bytes(b"The cat sat.\n\xff\xfe\n")
    record = run_json(model, tmp_path / "raw.txt", "--lang", "en")
    assert (record["tokens"], record["unknown"], record["bad_lines"]) == (4, 1, 1)
    (tmp_path / "more.spacy").write_bytes(DocBin(docs=[Doc(Vocab(), []), Doc(Vocab(), ["The cat"])]).to_bytes())
    rows = commands.invoke("elmo", "evaluate", model, tmp_path / "*.[st]*", "--per-sentence", "-").stdout.splitlines()
    assert [line.split("\t")[-2:] for line in rows][1:] == [
        [str(tmp_path / "more.spacy"), "2"],
        [str(tmp_path / "raw.txt"), "1"],
    ]
    output = run(model, tmp_path / "raw.txt")
    assert "1 bad lines were left out" in output
    assert "line 2" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{golden}", "{text}"), "no softmax.hdf5"),
        (("{tmp}/model", "{tmp}/gone.txt"), "gone.txt"),
        (("{tmp}/model", "{text}", "--per-sentence", "{tmp}/link.tsv"), "the file to write are the same"),
        (("{tmp}/model", "{tmp}/texts", "--per-sentence", "{text}"), "the file to write are the same"),
    ],
)
def test_refusals(
    model: Path, text: Path, tmp_path: Path, golden: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "link.tsv").symlink_to(tmp_path / "model" / "README.md")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "link.txt").symlink_to(text)
    places = {"golden": golden / "random_a", "text": text, "tmp": tmp_path}
    output = run(*(argument.format(**places) for argument in arguments), code=1)
    assert message.replace(" ", "") in output.replace(" ", "")  # messages are wrapped anywhere


def test_a_stopped_command_leaves_the_older_scores(
    model: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.tsv"
    path.write_text("mine", encoding="utf8")
    assert "no earlier command of this kind" in run(model, text, "--per-sentence", path, code=1)
    older = "sentence\ttokens\tolder"
    path.write_text(older, encoding="utf8")

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scoring, "score_rows", interrupted)
    assert "stopped" in run(model, text, "--per-sentence", path, code=130)
    assert path.read_text(encoding="utf8") == older
    assert {file.name for file in tmp_path.iterdir()} == {"model", "scores.tsv", "text.txt"}
