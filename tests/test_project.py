"""project.yml: its steps fit together, and a part of it runs on a tiny corpus as a user runs it."""

import ast
import hashlib
import re
import shutil
from pathlib import Path

import pytest
import srsly
from commands import run
from spacy.util import load_config
from weasel.cli.run import check_rerun
from weasel.util import load_project_config

from scripts.assets.asset_files import PREPARED
from scripts.assets.get_assets import read_assets

ROOT = Path(__file__).parents[1]
PROJECT = srsly.read_yaml(ROOT / "project.yml")
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
NAMES = ("Anna", "Bert", "Clara", "Emil", "Frieda", "Gustav")
TWEETS = "".join(f"@\tO\n{name}\tB-PER\nlives\tO\nin\tO\nBonn\tB-LOC\n!\tO\n\n" for name in NAMES)
SETTINGS = {
    "training.max_steps": 4,
    "training.eval_frequency": 2,
    "components.ner.model.tok2vec.encode.width": 32,
    "components.ner.model.tok2vec.embed.width": 32,
}
STEPS = ("assets_ner", "convert_ner", "random_bilm", "train_ner")
SCORED = ("evaluate_ner",)


@pytest.mark.parametrize("workflow", PROJECT["workflows"].values(), ids=PROJECT["workflows"].keys())
def test_each_step_finds_what_it_needs(workflow: list[str]) -> None:
    made: set[str] = set()
    for name in workflow:
        for path in COMMANDS[name].get("deps", []):
            inside = any(path.startswith(f"{folder}/") for folder in made)
            assert path in made or inside or (ROOT / path).exists(), f"{name} needs {path}"
        made |= set(COMMANDS[name].get("outputs", []))
    assert workflow[0].startswith("assets_")
    assert workflow[-1] == "results"


WITH_TEXT = {"alternatives", "bilms", "bits", "read"}
OTHER_WORKFLOWS = {"evidence", "inside", "ablations", "tuned"} | WITH_TEXT  # that are not of one task


def test_evidence_runs_every_command() -> None:
    """But those of four others, which need a text that is not fetched."""
    named = (PROJECT["workflows"][name] for name in ("evidence", *WITH_TEXT))
    assert {step for workflow in named for step in workflow} == COMMANDS.keys()


def scripts_in(text: str) -> list[str]:
    """Return the files of the scripts in a text of commands, which names them as modules."""
    return [f"{name.replace('.', '/')}.py" for name in re.findall(r"python -m (scripts[\w.]+)", text)]


def test_steps_name_their_scripts_and_files() -> None:
    for name, command in COMMANDS.items():
        text = " ".join(command["script"])
        files = re.findall(r"(?:configs|corpus|assets|training)/[\w./-]+", text)
        for path in [*files, *scripts_in(text)]:
            declared = {*command.get("deps", []), *command.get("outputs", [])} | {"scripts/pages/results_page.py"}
            known = path in declared or any(
                f"{one}/".startswith(f"{path}/") or path.startswith(f"{one}/") for one in declared
            )
            assert known, f"{name} does not name {path}"


def scripts_of(path: Path) -> set[str]:
    """Return a script and those that it imports, each by a relative name."""
    imported = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            imported += [folder.with_suffix(".py"), *(folder / f"{one.name}.py" for one in node.names)]
    own = path.relative_to(ROOT).as_posix()
    return {own}.union(*(scripts_of(one) for one in imported if one.is_file()))


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"results"}))  # which always runs
def test_steps_depend_on_all_code_of_their_scripts(name: str) -> None:
    names = scripts_in(" ".join(COMMANDS[name]["script"]))
    needed: set[str] = set().union(*(scripts_of(ROOT / one) for one in names))
    assert needed == {path for path in COMMANDS[name]["deps"] if re.fullmatch(r"scripts/[\w/]+\.py", path)}


def test_assets() -> None:
    files = read_assets(ROOT)
    for asset in files:
        assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{7,40}/.+", asset["url"])
        assert re.fullmatch(r"[0-9a-f]{32}", asset["checksum"])
        assert Path(asset["dest"]).name == Path(asset["url"]).name
    assert len({asset["dest"] for asset in files}) == len(files)


@pytest.mark.parametrize(
    "task",
    sorted({*PROJECT["workflows"]} - OTHER_WORKFLOWS),
)
def test_a_task_gets_its_own_files(task: str) -> None:
    """The folders that a step gets are those that it makes; two corpora come from scripts of their own."""
    command = COMMANDS[f"assets_{task}"]
    text = " ".join(command["script"])
    folders = [name for names in re.findall(r"get_assets ([\w ]+) --data", text) for name in names.split()]
    made = [path.removeprefix("assets/") for path in command["outputs"]]
    own = {"roles": ["propbank_ewt"], "ner_newswire": ["worldwide_newswire"]}.get(task, [])
    assert sorted([*folders, *own]) == sorted(made)
    assert not folders or read_assets(ROOT, folders)
    needed = {path.split("/")[1] for path in COMMANDS[f"convert_{task}"]["deps"] if path.startswith("assets/")}
    assert needed <= set(made)


def test_prepared_files_stand_for_assets() -> None:
    assets = {asset["dest"] for asset in read_assets(ROOT)}
    for files, originals in PREPARED:
        assert set(originals) <= assets
        assert not assets & set(files)
        assert len({Path(path).parts[1] for path in (*files, *originals)}) == 1  # the same step gets them


def test_what_is_made_is_not_committed_but_for_results() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    made = {Path(path).parts[0] for command in COMMANDS.values() for path in command.get("outputs", [])}
    assert "results" not in made  # these are
    assert {f"/{folder}/" for folder in made} <= set(ignored)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The project with tiny corpora as its assets and a training of a few steps."""
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "spacy_elmo").mkdir()
    shutil.copytree(ROOT / "spacy_elmo" / "bilms", folder / "spacy_elmo" / "bilms")  # a dependency of steps
    (folder / "configs").mkdir()
    for name in ("ner.cfg", "ner_elmo.cfg"):
        load_config(ROOT / "configs" / name, SETTINGS).to_disk(folder / "configs" / name)
    checksum = hashlib.md5(TWEETS.encode()).hexdigest()
    tweets = [one for one in PROJECT["assets"] if "broad_twitter" in one["dest"]]
    assets = [{**one, "checksum": checksum, "url": "nowhere"} for one in tweets]
    workflows = {"tiny": [*STEPS, *SCORED, "results"]}
    srsly.write_yaml(folder / "project.yml", {**PROJECT, "assets": assets, "workflows": workflows})
    (tmp_path / "data").mkdir()
    for one in assets:
        (tmp_path / "data" / Path(one["dest"]).name).write_text(TWEETS, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_tiny_corpus_from_assets_to_results(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each script of a step is a process of its own."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    given = ("--vars.data", str(clone.parent / "data"), "--vars.seeds", "3", "--vars.networks", "baseline random")
    run("project", "run", "tiny", clone, *given)
    for kind in ("baseline", "random"):
        result = srsly.read_json(clone / f"results/ner/{kind}/seed-3.json")
        assert 0 <= result["tests"]["test"]["ents_f"] <= 1
        assert result["parameters"] > 10_000
        assert result["megabytes"] > 0.1
        trained = clone / f"training/ner/{kind}/seed-3"
        assert srsly.read_json(trained / "run.json")["seconds"] > 0
        config = load_config(trained / "model-best" / "config.cfg", interpolate=True)
        assert config["training"]["seed"] == config["system"]["seed"] == 3
    page = (clone / "docs/results.md").read_text(encoding="utf-8")
    assert "| F1 | x alone |" in page
    assert "| F1 | [x; biLM with random weights] |" in page
    assert "`results/ner/elmo/seed-3.json`" in page
    assert (clone / "docs/results_ner.png").stat().st_size > 1000

    overrides = {"vars.data": given[1], "vars.seeds": 3, "vars.networks": given[5]}
    commands = {one["name"]: one for one in load_project_config(clone, overrides=overrides)["commands"]}
    assert [name for name in (*STEPS, *SCORED) if check_rerun(clone, commands[name])] == [
        "train_ner",
        *SCORED,
    ]  # which look themselves
    with (clone / "assets/broad_twitter/btc.test").open("a", encoding="utf-8") as file:
        file.write(TWEETS)
    again = [name for name in (*STEPS, *SCORED) if check_rerun(clone, commands[name])]
    assert again == ["assets_ner", "convert_ner", "train_ner", *SCORED]
