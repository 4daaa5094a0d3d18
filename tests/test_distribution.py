"""What is built for an index: the page that it shows, and files that are equal in every byte each time."""

import json
import re
import runpy
from configparser import ConfigParser
from pathlib import Path

import pytest
import srsly
from commands import invoke, run

import spacy_elmo

ROOT = Path(__file__).parents[1]
SETUP = runpy.run_path(str(ROOT / "setup.py"))


def test_the_page_of_the_index() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    page = SETUP["index_page"](readme, "1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert len(targets) == len(re.findall(r"\]\(([^)]+)\)", readme)) > 20
    assert all(target.startswith("https://") for target in targets)
    for target in targets:  # what README links to is there
        if target.startswith(SETUP["REPOSITORY"]):
            path = re.sub(r"^/(blob|raw)/v1\.2\.3/|#.*", "", target.removeprefix(SETUP["REPOSITORY"]))
            assert (ROOT / path).is_file(), target
    assert 'pip install "spacy-elmo[plot]"' in page
    assert not re.search(r"make run|make test|packages/|a clone", page)


def test_each_bilm_tells_its_version_and_its_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = (ROOT / "spacy_elmo/bilms/en_core/README.md").read_text(encoding="utf8")
    softmax = ConfigParser()
    softmax.read(ROOT / "packages/en_core_softmax/setup.cfg", encoding="utf8")
    version, licence = (softmax["metadata"][key] for key in ("version", "license_expression"))
    assert f"| version | {version} |\n| licence | {licence} |\n" in card
    monkeypatch.chdir(tmp_path)
    told = json.loads(invoke("elmo", "--version", "--json").output)["bilms"]
    assert told["en_core"] == {"distribution": "spacy-elmo", "version": version, "licence": licence}
    assert f"en_core {version} ({licence})" in run("elmo", "--version")
    assert f"version {version} licence {licence}" in run("elmo", "info", "en_core")
    (tmp_path / "en_core").mkdir()  # which is what en_core names here, but for --version
    assert json.loads(invoke("elmo", "--version", "--json").output)["bilms"] == told


def test_the_citation_names_the_version_and_the_repository() -> None:
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert (citation["version"], citation["repository-code"]) == (spacy_elmo.__version__, SETUP["REPOSITORY"])
