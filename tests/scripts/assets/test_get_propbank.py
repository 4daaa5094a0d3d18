"""PropBank's annotations get the words of UD English EWT."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from role_cases import roles_in

from scripts.assets import get_propbank
from scripts.assets.get_propbank import main
from scripts.corpora.convert_roles import to_docs
from spacy_elmo.errors import CorpusError, DownloadError

PARTS = ("train", "dev", "test")
WORDS = """\
# newdoc id = weblog-a
# sent_id = weblog-a-0001
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2-3\tcannot\t_\t_\t_\t_\t_\t_\t_\t_
2\tcan\tcan\tAUX\tMD\t_\t0\troot\t_\t_
3\tnot\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_

# sent_id = weblog-a-0002
1\tother\tother\tADJ\tJJ\t_\t0\troot\t_\t_

# sent_id = weblog-b-0001
1\tunknown\tunknown\tADJ\tJJ\t_\t0\troot\t_\t_
"""
ROLES = """\
google/ewt/weblog/00/a.xml 0 0 [WORD] PRP (TOP(S* - - (ARG0*)
google/ewt/weblog/00/a.xml 0 1 [WORD] MD * can can.01 (V*)
google/ewt/weblog/00/a.xml 0 2 [WORD] RB *)) - - (ARGM-NEG*)

google/ewt/weblog/00/a.xml 1 0 [WORD] JJ * - -
google/ewt/weblog/00/a.xml 1 1 [WORD] JJ * - -
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for part in PARTS:
        path = tmp_path / "project" / "assets" / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS, encoding="utf-8")
    return tmp_path / "project"


@pytest.fixture
def repository(tmp_path: Path) -> str:
    folder = tmp_path / "release"
    path = folder / "data" / "google" / "ewt" / "weblog" / "00" / "a.xml.gold_skel"
    path.parent.mkdir(parents=True)
    path.write_text(ROLES, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
    return str(folder)


def test_words_and_roles_are_joined(project: Path, repository: str) -> None:
    main(project, repository=repository, commit="HEAD")
    for part in PARTS:
        (doc,) = to_docs(project / f"assets/propbank_ewt/propbank_ewt_{part}.conll")  # the others do not agree
        assert [token.text for token in doc] == ["She", "can", "not"]
        assert roles_in(doc) == {1: [(0, 1, "ARG0"), (1, 2, "V"), (2, 3, "ARGM-NEG")]}


def test_files_that_are_there_are_copied(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_propbank, "CHECKSUMS", dict.fromkeys(PARTS, hashlib.md5(b"x").hexdigest()))
    (tmp_path / "data").mkdir()
    for part in PARTS:
        (tmp_path / "data" / f"propbank_ewt_{part}.conll").write_bytes(b"x")
    main(project, data=str(tmp_path / "data"), repository="nowhere")
    assert (project / "assets/propbank_ewt/propbank_ewt_test.conll").read_bytes() == b"x"
    main(project, repository="nowhere")  # they are there


def test_no_connection(project: Path, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="can't be fetched with git"):
        main(project, repository=str(tmp_path / "nowhere"))


def test_nothing_agrees(project: Path, repository: str) -> None:
    (project / "assets/ud_english_ewt/en_ewt-ud-train.conllu").write_text("", encoding="utf-8")
    with pytest.raises(CorpusError, match="no sentences in it"):
        main(project, repository=repository, commit="HEAD")
    assert not list((project / "assets/propbank_ewt").iterdir())
