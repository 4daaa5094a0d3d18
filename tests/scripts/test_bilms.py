"""What is measured of biLMs, and those that the experiments compare with: on small ones, by independent commands."""

import json
from pathlib import Path

import pytest
from commands import run
from embedded_case import TEXT, model_of
from run_cases import row
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from scripts.bilms import embeddings, inside, measure, record_run
from scripts.runs.experiments import read_results
from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import CommandError
from spacy_elmo.formats import read_options, read_weights
from spacy_elmo.pretraining.evaluating import append_row

ROOT = Path(__file__).parents[2]
SMALL = "--bilm.lstm.dim 16 --bilm.lstm.projection_dim 8 --bilm.char_cnn.filters [[1,4],[2,8]] --vocabulary.size 20"
RUN = "--training.streams 4 --training.steps 5 --training.softmax.kind full --training.schedule.warmup_steps 2"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("it rains in the valley\nthe old town sleeps until noon\n" * 50, encoding="utf-8")
    return tmp_path


def write_docs(path: str, *sentences: str) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=[Doc(Vocab(), words=sentence.split()) for sentence in sentences]).to_disk(path)
    return path


def test_what_is_measured_of_a_bilm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model_of().save(folder / "files")
    Path("held.txt").write_text(TEXT, encoding="utf8")
    Path("novels.txt").write_text("\n".join(TEXT.splitlines()[:2]), encoding="utf8")
    for name, value in {"NOVELS": 2, "NEWSWIRE": Path("held.txt"), "TWEETS": Path("held.txt")}.items():
        monkeypatch.setattr(measure, name, value)
    monkeypatch.setattr(measure, "tag_accuracies", lambda model: [0.5])
    measure.main(["files"], Path("held.txt"), Path("novels.txt"))
    result = read_results("bilms")["files"]["result"]
    assert result["bytes"] == {name: Path("files", name).stat().st_size for name in ("weights.hdf5", "softmax.hdf5")}
    for text, path in {"wikipedia": "held.txt", "novels": "novels.txt", "tweets": "held.txt"}.items():
        printed = json.loads(run("elmo", "evaluate", "files", path, "--json"))
        assert result["perplexities"][text]["perplexity"] == pytest.approx(printed["zero_state"]["mean"], rel=1e-6)
    with pytest.raises(CommandError, match=r"held\.txt: 3 sentences, 0 lines .* Expected 4 sentences or more"):
        measure.read_text(Path("held.txt"), 4)


@pytest.mark.slow
def test_neighbours_in_a_small_corpus(folder: Path) -> None:
    sentences = ("They sat on the bank .", "The bank lent us money .", "Banks lend money .")
    paths = [Path(write_docs("0.spacy", *sentences[:2])), Path(write_docs("1.spacy", sentences[2]))]
    words = Path("words.tsv")
    words.write_text(f"word\ta\tb\tc\td\nbank\triver\t{sentences[0]}\tmoney\tThe bank lent me money .\n")
    embedder = ElmoEmbedder("en_core")
    result = inside.neighbours(words, paths, embedder)
    assert (result["layer"], result["tokens"], result["sentences"]) == (2, 16, 3)
    [word] = result["words"]
    # layer 0 of all other words, by the cosine
    types = dict.fromkeys(" ".join(sentences).split())
    vectors = {one: embedder.embed_sentence([one])[0, 0] for one in types}
    units = {one: vector / (vector @ vector) ** 0.5 for one, vector in vectors.items()}
    cosines = {one: float(units[one] @ units["bank"]) for one in types if one != "bank"}
    assert [one["word"] for one in word["static"]] == sorted(cosines, key=lambda one: -cosines[one])[:5]
    river, money = word["senses"]
    assert len(river["neighbours"]) == len(money["neighbours"]) == 3  # one of each sentence
    first = money["neighbours"][0]
    assert (first["number"], first["before"], first["word"], first["after"]) == (2, ["The"], "bank", ["lent", "us"])
    with pytest.raises(CommandError, match="the question is 'x'"):
        inside.main(["x"])


def test_a_record_of_pretraining(folder: Path) -> None:
    facts = {"bilm": "en_mini", "title": "run 9", "text": "a text", "command": "python -m x", "machine": "a processor"}
    for step in (10, 240):
        append_row(folder / "metrics.jsonl", row(step, 200 - step / 3))
    config = '[paths]\ntrain = "/home/text.txt"\ninit = "en_mini"\n\n[training]\naverage_share = 0.005\n'
    (folder / "config.cfg").write_text(config)
    with pytest.raises(CommandError, match=r"began from another biLM.* Expected --before"):
        record_run.main(folder, "en_mini_9", **facts)
    record_run.main(folder, "en_mini_9", **facts, before=7)
    assert read_results("pretraining")["en_mini_9"] == facts | {
        "tokens_before": 7,
        "averaged": True,
        "minutes": 2.0,  # 240 steps of half a second
        "evaluations": [[10 * 5_120, 196.67], [240 * 5_120, 120.0]],
        "settings": {"training": {"average_share": 0.005}},
    }
    with pytest.raises(CommandError, match="Expected a new name"):
        record_run.main(folder, "en_mini_9", **facts, before=7)


@pytest.mark.slow
def test_a_short_bilm(folder: Path) -> None:
    """Its files are official."""
    Path("made").mkdir()
    assert embeddings.train_short_bilm(Path("text.txt"), Path("made"), 200, (*SMALL.split(), *RUN.split())) >= 200
    assert sorted(path.name for path in Path("made").iterdir()) == ["options.json", "weights.hdf5"]
    assert read_weights("made/weights.hdf5", read_options("made/options.json"))
