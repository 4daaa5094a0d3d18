"""`elmo compare` and `init-config --baseline`: the same networks with ELMo and without it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import spacy
from commands import run
from spacy.tokens import DocBin
from spacy.training import Corpus
from spacy.util import load_config, load_model_from_config

CONLLU = "1\tBonn\tBonn\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n2\trocks\track\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
CONLL = "Bonn B-LOC\nrocks O\n\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that name the data, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("train.conll").write_text(CONLL * 3)
    return ["--train", "train.conll", "--dev", "train.conll", "--lang", "xx"]


def test_the_same_networks_without_elmo(tmp_path: Path) -> None:
    names = "tagger,parser,ner,textcat,semantic_roles,answers"
    elmo, alone = tmp_path / "elmo.cfg", tmp_path / "baseline.cfg"
    for path, options in ((elmo, []), (alone, ["--baseline"])):
        run("elmo", "init-config", path, "--pipeline", names, "--lang", "xx", *options)
    config, given = load_config(alone), load_config(elmo)
    nlp = load_model_from_config(config, validate=True)
    assert nlp.pipe_names == names.split(",")
    for name in nlp.pipe_names:
        with_elmo, without = (one["components"][name]["model"]["tok2vec"] for one in (given, config))
        parts = {name: with_elmo[name] for name in ("embed", "encode")}
        assert without == {"@architectures": "spacy.Tok2Vec.v2", **parts}
    assert config["training"] == given["training"]


@pytest.mark.slow
def test_two_trainings(data: list[str]) -> None:
    """The scores are those of the saved pipelines; the command goes on where it stopped, and trains nothing again."""
    settings = ["compare", "out", *data, "--training.max_steps", "1", "--seeds"]
    assert "One training of each" in run("elmo", *settings, "1")
    first = json.loads(Path("out/scores.json").read_text())
    assert [(each["network"], each["seed"]) for each in first["runs"]] == [("x alone", 0), ("[x; ELMo]", 0)]
    nlp = spacy.load("out/elmo-0/model-best")
    assert nlp.pipe_names == ["elmo", "ner"]
    expected = nlp.evaluate(list(Corpus("out/corpus/dev.spacy")(nlp)))
    assert first["runs"][1]["scores"]["ents_f"] == expected["ents_f"]
    size = sum(path.stat().st_size for path in Path("out/elmo-0/model-best").rglob("*") if path.is_file())
    assert first["runs"][1]["megabytes"] == size / 1e6
    run("elmo", *settings, "2")
    both = json.loads(Path("out/scores.json").read_text())["runs"]
    assert both[:2] == first["runs"]
    assert [each["seed"] for each in both[2:]] == [1, 1]
    seeds = [
        load_config(f"out/{folder}/model-best/config.cfg")["system"]["seed"] for folder in ("elmo-1", "baseline-1")
    ]
    assert seeds == [1, 1]


def trained(networks: dict[str, list[float]]) -> Path:
    """Write what `compare` writes after its trainings, of these values of F1."""
    file = Path("train.conll")
    path = f"{file.absolute()}, SHA-256 {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
    settings = {"train": path, "dev": path, "test": path, "pipeline": "ner", "lang": "xx", "model": None}
    settings |= {"optimize": "efficiency", "vectors": None, "gpu_id": -1, "overrides": {}}
    runs = [
        {
            "network": network,
            "seed": seed,
            "minutes": 1.5,
            "megabytes": 6.2,
            "words_per_second": 1234.5,
            "scores": {"ents_f": score, "ents_p": 0.5, "token_acc": 1.0, "sents_f": 0.0, "sents_p": 0.5},
        }
        for network, scores in networks.items()
        for seed, score in enumerate(scores)
    ]
    Path("out").mkdir(exist_ok=True)
    Path("out/scores.json").write_text(json.dumps({"settings": settings, "runs": runs}))
    return Path("out/scores.json")


@pytest.mark.parametrize(
    ("alone", "elmo", "row"),
    [
        ([0.6, 0.62, 0.64], [0.63, 0.65, 0.67], "62.0 ± 2.0 65.0 ± 2.0 +3.0, 8% of the errors (within seeds)"),
        ([0.6], [0.5], "60.0 50.0 -10.0, 25% more errors"),
        ([1.0], [0.9], "ents_f 100.0 90.0 -10.0"),
    ],
)
def test_the_table(data: list[str], alone: list[float], elmo: list[float], row: str) -> None:
    trained({"x alone": alone, "[x; ELMo]": elmo})
    told = " ".join(run("elmo", "compare", "out", *data, "--seeds", len(alone)).split())
    assert row in told
    assert "ents_p" in told
    assert "sents_p" not in told
    assert "group sentences" not in told  # spaCy's advice on conversion
    assert "no sentence boundaries" not in told
    assert not Path("out/corpus/test.spacy").exists()
    assert "minutes of training 1.5 1.5 megabytes 6 6 words a second 1,234 1,234" in told
    assert "sents_f" not in told  # ner sets no sentences
    (doc,) = list(DocBin().from_disk("out/corpus/train.spacy").get_docs(spacy.blank("en").vocab))[:1]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Bonn", "LOC")]


def test_data_without_annotations(data: list[str]) -> None:
    DocBin(docs=[spacy.blank("en")("Bonn lies there")]).to_disk("plain.spacy")
    steps = ("--training.max_steps", 1, "--training.eval_frequency", 1)
    files = ("--train", "plain.spacy", "--dev", "plain.spacy", "--lang", "xx", *steps)
    refused = run("elmo", "compare", "out", *files, "--pipeline", "tagger", code=1)
    assert "plain.spacy: [E143]" in refused
    assert "Expected annotations of all components of --pipeline" in refused
    assert "plain.spacy: no annotations of ner" in run("elmo", "compare", "ner", *files, code=1)
    assert not Path("ner", "baseline-0").exists()
    some = ["--train", data[1], *files[2:]]
    assert "nothing is scored, because the development part has no annotations" in run("elmo", "compare", "ner", *some)


def test_words_that_the_tokenizer_does_not_find(data: list[str]) -> None:
    scores = trained({"x alone": [0.6], "[x; ELMo]": [0.7]})
    assert "tokenizer" not in run("elmo", "compare", "out", *data)
    scores.write_text(scores.read_text().replace('"token_acc": 1.0', '"token_acc": 0.8'))
    told = " ".join(run("elmo", "compare", "out", *data).split())
    assert "finds 80% of the words of the development part" in told
    assert "add --corpora.train.gold_preproc true" in told
    told = run("elmo", "compare", "out", *data, "--corpora.train.gold_preproc", "true", code=1)
    assert "its trainings had corpora.train.gold_preproc = None, but now it is True. Expected" in told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--dev": "bad.conllu"}, "bad.conllu: not read"),
        ({"--dev": "empty.json"}, "empty.json: no sentence in it"),
        ({"--dev": "table.csv"}, "table.csv: not read (Can't find converter for csv). Expected .spacy"),
        ({"--train": "TABLE.CONLLU"}, "TABLE.CONLLU: no annotations of ner"),
        ({"--dev": "table.csv"}, "such as a table, or texts with entities by offsets, write the docs to a .spacy file"),
        ({"--dev": "offsets.json"}, "not read ('paragraphs'). Expected"),
        ({"--pipeline": "tagger"}, "its trainings had pipeline = ner, but now it is tagger. Expected the same"),
        ({"--pipeline": "parser"}, "out: holds mine.json, but no scores.json"),
        ({"--pipeline": "sentencizer"}, "no component that is trained"),
        ({"--pipelin": "ner"}, "--pipelin: expected a setting in a section"),
        ({"--training.max_step": "5"}, "training.max_step is no setting. Expected one of accumulate_gradient"),
        ({"--training.max_steps": "abc"}, "max_steps Input should be a valid integer"),
    ],
)
def test_what_is_refused(data: list[str], change: dict[str, str], message: str) -> None:
    Path("bad.conllu").write_text("1\tBonn\n\n")
    Path("empty.json").write_text("[]")
    Path("TABLE.CONLLU").write_text(CONLLU)
    Path("table.csv").write_text("text,label\n")
    Path("offsets.json").write_text('[{"text": "In Bonn", "entities": [[3, 7, "LOC"]]}]')
    if change.get("--pipeline") == "tagger":
        trained({"x alone": [0.6]})
    if change.get("--pipeline") == "parser":
        trained({}).rename("out/mine.json")
    options = dict(zip(data[::2], data[1::2])) | change
    assert message in run("elmo", "compare", "out", *[part for pair in options.items() for part in pair], code=1)


def test_a_command_that_failed_can_be_corrected(data: list[str]) -> None:
    """Nothing was trained, so other data are no other comparison."""
    Path("empty.json").write_text("[]")
    Path("flat.conll").write_text("Bonn B-LOC\nrocks O\n")
    told = run("elmo", "compare", "out", "--lang", "xx", "--train", "flat.conll", "--dev", "empty.json", code=1)
    assert "flat.conll: no sentence boundaries" in told
    assert "its trainings had" not in run("elmo", "compare", "out", *data, "--pipeline", "nothing", code=1)
