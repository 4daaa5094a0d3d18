"""project.yml: its commands are real, and parts of it run on tiny corpora as a user runs them."""

import hashlib
import re
import shutil
from pathlib import Path

import pytest
import srsly
from commands import run
from spacy.util import load_config

from scripts.assets import PREPARED, TABLE, read_assets
from scripts.pages.results_page import ALTERNATIVES
from scripts.runs.experiments import TASKS

ROOT = Path(__file__).parents[1]
PROJECT = srsly.read_yaml(ROOT / "project.yml")
COMMANDS = {command["name"]: command["script"] for command in PROJECT["commands"]}
NAMES = ("Anna", "Bert", "Clara", "Emil", "Frieda", "Gustav")
TWEETS = "".join(f"@\tO\n{name}\tB-PER\nlives\tO\nin\tO\nBonn\tB-LOC\n!\tO\n\n" for name in NAMES)
SETTINGS = {
    "training.max_steps": 4,
    "training.eval_frequency": 2,
    "components.ner.model.tok2vec.encode.width": 32,
    "components.ner.model.tok2vec.embed.width": 32,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_name_what_there_is(name: str) -> None:
    text = "\n".join(COMMANDS[name])
    for script, word in re.findall(r"python -m (scripts[\w.]+) ?(\w*)", text):
        source = (ROOT / f"{script.replace('.', '/')}.py").read_text(encoding="utf-8")
        functions = re.findall(r"^    run_command\((.+)\)$", source, re.MULTILINE)[0].split(", ")
        assert (word in functions) == (len(functions) > 1)  # a script of one function has no subcommands
    for workflow in re.findall(r"project run (\w+) ", text):
        assert workflow.removesuffix("_") in {*PROJECT["workflows"], *COMMANDS, "corpus"}
    assert {*re.findall(r"\$\{vars\.(\w+)\}", text)} <= PROJECT["vars"].keys()


def test_each_task_has_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert PROJECT["workflows"]["corpus_all"] == [f"corpus_{task.name}" for task in TASKS]
    for task in TASKS:
        script = "\n".join(COMMANDS[f"corpus_{task.name}"])
        folders = [
            name for names in re.findall(r"scripts\.assets get ([\w ]+) --data", script) for name in names.split()
        ]
        assert not folders or read_assets(folders)
        for path in task.tests.values():
            assert path in script or str(Path(path).parent) in script.split()


def test_all_alternatives_are_trained_scored_and_timed() -> None:
    scripts = COMMANDS["train_alternatives"]
    trained, scored, timed = (set(re.findall(r'--networks "(.+)"', script)[0].split()) for script in scripts)
    assert trained == scored == {*ALTERNATIVES}
    assert timed == {*ALTERNATIVES} - {"pretrained"}  # it changes the weights of x alone


def test_assets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = read_assets()
    for asset in files:
        assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{7,40}/.+", asset["url"])
        assert re.fullmatch(r"[0-9a-f]{32}", asset["checksum"])
        assert Path(asset["dest"]).name == Path(asset["url"]).name
        assert asset["licence"]
    names = {asset["dest"] for asset in files}
    assert len(names) == len(files)
    for prepared, originals in PREPARED:
        assert set(originals) <= names
        assert not names & set(prepared)
        assert len({Path(path).parts[1] for path in (*prepared, *originals)}) == 1  # the same command gets them


def test_what_is_made_is_not_committed_but_for_results() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {f"/{folder.partition('/')[0]}/" for folder in PROJECT["directories"]} <= set(ignored)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project with tiny corpora as its assets and a training of a few steps."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # each script of a command is a process of its own
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "packages").symlink_to(ROOT / "packages")
    for name in ("configs", "docs"):
        (folder / name).mkdir()
    for name in ("ner.cfg", "ner_elmo.cfg"):
        load_config(ROOT / "configs" / name, SETTINGS).to_disk(folder / "configs" / name)
    shutil.copy(ROOT / "project.yml", folder)
    (tmp_path / "data").mkdir()
    rows = ["dest\tchecksum\turl"]
    for part in ("train", "dev", "test"):
        rows.append(f"assets/broad_twitter/btc.{part}\t{hashlib.md5(TWEETS.encode()).hexdigest()}\tnowhere")
        (tmp_path / "data" / f"btc.{part}").write_text(TWEETS, encoding="utf-8")
    (folder / TABLE).write_text("\n".join(rows), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_task_from_its_corpus_to_the_page(clone: Path) -> None:
    given = ("--vars.data", str(clone.parent / "data"), "--vars.seeds", "3", "--vars.networks", "baseline mini")
    run("project", "run", "task", clone, "--vars.task", "ner", *given)
    results = srsly.read_json(clone / "results/ner.json")
    assert results.keys() == {"baseline/seed-3", "mini/seed-3"}
    for name, result in results.items():
        assert 0 <= result["tests"]["test"]["ents_f"] <= 1
        assert result["parameters"] > 10_000
        assert result["megabytes"] > 0.1
        trained = clone / "training/ner" / name
        assert srsly.read_json(trained / "run.json")["seconds"] > 0
        config = load_config(trained / "model-best" / "config.cfg", interpolate=True)
        assert config["training"]["seed"] == config["system"]["seed"] == 3
    page = (clone / "docs/results.md").read_text(encoding="utf-8")
    assert "| x alone | " in page
    assert "| [x; en_mini] | " in page
    before = (clone / "results/ner.json").read_bytes(), (trained / "run.json").stat().st_mtime
    run("project", "run", "task", clone, "--vars.task", "ner", *given)  # neither trained nor scored again
    assert before == ((clone / "results/ner.json").read_bytes(), (trained / "run.json").stat().st_mtime)


@pytest.mark.slow
def test_own_data(clone: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both trainings end after their first evaluation, and the package is that of the pipeline with ELMo."""
    own = clone.parent / "own.conll"
    own.write_text(TWEETS, encoding="utf-8")
    monkeypatch.setenv("SPACY_CONFIG_OVERRIDES", "--training.max_steps 1")
    run("project", "run", "all", clone, "--vars.train", own, "--vars.dev", own)
    assert "what ELMo changes" in capfd.readouterr().out
    (package,) = (clone / "training/own_package").glob("*/dist/*.tar.gz")
    assert package.name == "en_elmo_pipeline-0.0.0.tar.gz"
