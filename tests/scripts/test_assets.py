"""Files of the tasks: copied from a folder, fetched from an address or with git, or named if neither has them."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from role_cases import roles_in
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from scripts import assets, convert
from spacy_elmo.errors import CommandError, DownloadError

TEXTS = {"a.txt": b"one\n", "b.txt": b"two\n"}
WORDS = """\
# newdoc id = weblog-a
# sent_id = weblog-a-0001
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2-3\tcannot\t_\t_\t_\t_\t_\t_\t_\t_
2\tcan\tcan\tAUX\tMD\t_\t0\troot\t_\t_
3\tnot\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_

# sent_id = weblog-a-0002
1\tother\tother\tADJ\tJJ\t_\t0\troot\t_\t_
"""
ROLES = """\
google/ewt/weblog/00/a.xml 0 0 [WORD] PRP (TOP(S* - - (ARG0*)
google/ewt/weblog/00/a.xml 0 1 [WORD] MD * can can.01 (V*)
google/ewt/weblog/00/a.xml 0 2 [WORD] RB *)) - - (ARGM-NEG*)

google/ewt/weblog/00/a.xml 1 0 [WORD] JJ * - -
google/ewt/weblog/00/a.xml 1 1 [WORD] JJ * - -
"""
NAF = """<?xml version='1.0' encoding='UTF-8'?>
<NAF xml:lang="en"><text>
<wf id="w0" sent="1">The</wf><wf id="w1" sent="1">bank</wf><wf id="w2" sent="2">gave
</wf><wf id="w3" sent="2">up</wf></text><terms>
<term id="t1" lemma="the" pos="DT"><span><target id="w0"/></span></term>
<term id="t2" lemma="bank" pos="NN"><span><target id="w1"/></span><externalReferences>
<externalRef resource="own" reftype="original_id" reference="d0.1"/>
<externalRef resource="WordNet-2.1" reftype="sense" reference="bank%1:14:00::"/></externalReferences></term>
<term id="t3" lemma="give_up" pos="VB"><span><target id="w2"/><target id="w3"/></span><externalReferences>
<externalRef resource="W" reftype="lexical_key" reference="2:40:00::"/></externalReferences></term>
</terms></NAF>
"""
TABLE = """# d0 sent 1
The\tthe\tDT\t-
bank\tbank\tNN\tWordNet-2.1:sense:bank%1:14:00::

# d0 sent 2
gave\tgive_up\tVB\tW:lexical_key:2:40:00::
up\tgive_up\tVB\tW:lexical_key:2:40:00::

"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two assets, whose addresses are files."""
    (tmp_path / "scripts").mkdir()
    rows = [
        f"assets/x/{name}\t{hashlib.md5(text).hexdigest()}\t{tmp_path}/there/{name}" for name, text in TEXTS.items()
    ]
    (tmp_path / assets.TABLE).write_text("\n".join(["dest\tchecksum\turl", *rows, ""]))
    for folder in ("there", "data"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def repository(monkeypatch: pytest.MonkeyPatch, corpus: str, files: dict[str, str]) -> None:
    """Make a repository of these files, in the place of a corpus's."""
    for name, text in files.items():
        path = Path("git", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", "git", *arguments], check=True, capture_output=True)
    monkeypatch.setitem(assets.REPOSITORIES, corpus, (str(Path("git").absolute()), "HEAD"))


def test_from_a_folder_and_the_rest_from_the_address(project: Path) -> None:
    (project / "data" / "deep").mkdir()
    (project / "data" / "a.txt").write_bytes(b"another file of this name\n")
    (project / "data" / "deep" / "a.txt").write_bytes(TEXTS["a.txt"])
    (project / "there" / "b.txt").write_bytes(TEXTS["b.txt"])  # a.txt is not there
    assets.get(["x"], "data")
    assert {path.name: path.read_bytes() for path in (project / "assets/x").iterdir()} == TEXTS


def test_what_does_not_come_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "there" / "b.txt").write_bytes(b"not what it was\n")
    with pytest.raises(DownloadError, match=r"(?s)assets/x/a\.txt \(MD5 .*from .*assets/x/b\.txt"):
        assets.get(["x"])
    with pytest.raises(CommandError, match=r"assets/y: no files there\. Expected some of the folders x"):
        assets.get(["y"])
    with pytest.raises(CommandError, match="no such folder"):
        assets.get(["x"], "none")
    monkeypatch.setitem(assets.REPOSITORIES, "newswire", (str(project / "nowhere"), "HEAD"))
    with pytest.raises(DownloadError, match=r"can't be fetched with git .*--vars\.data"):
        assets.newswire()


def test_prepared_files_stand_for_their_originals(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = {"assets/x/p.tsv": hashlib.md5(b"p").hexdigest()}
    monkeypatch.setattr(assets, "PREPARED", [(prepared, ("assets/x/a.txt", "assets/x/b.txt"))])
    sources = [Path("assets/y/c"), Path("assets/x/a.txt"), Path("assets/x/b.txt")]
    assert assets.prepared_or_given(sources) == sources
    (project / "data" / "p.tsv").write_bytes(b"p")
    assets.get(["x"], "data")
    assert assets.prepared_or_given(sources) == [Path("assets/y/c"), Path("assets/x/p.tsv")]


def test_words_and_roles_are_joined(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(monkeypatch, "propbank", {"data/google/ewt/weblog/00/a.xml.gold_skel": ROLES})
    for part in assets.PARTS:
        path = project / f"assets/ud_english_ewt/en_ewt-ud-{part}.conllu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS, encoding="utf-8")
    assets.propbank()
    convert.roles(Path("assets/propbank_ewt/propbank_ewt_dev.conll"), Path("dev.spacy"))
    [doc] = DocBin().from_disk("dev.spacy").get_docs(Vocab())  # the other sentence does not agree
    assert roles_in(doc) == {1: [(0, 1, "ARG0"), (1, 2, "V"), (2, 3, "ARGM-NEG")]}
    assert capsys.readouterr().out.count("warning: ") == 3  # these are not the files that the results were made with


def test_every_article_is_in_one_part(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(monkeypatch, "newswire", {f"processed_annotated/{n}.tsv": f"word {n}\tO\tB-LOC\n" for n in range(40)})
    assets.newswire()
    found = []
    for part, path in zip(assets.PARTS, assets.NEWSWIRE):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        words = [line.split("\t")[0] for line in lines if line.endswith("\tB-LOC")]
        assert all(assets.part_of(f"{word.removeprefix('word_')}.tsv") == part for word in words)
        found += words
    assert sorted(found) == sorted(f"word_{n}" for n in range(40))


def test_senses(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = project / "index.sense"
    monkeypatch.setattr(assets, "INSTALLED", index)
    with pytest.raises(DownloadError, match="install Debian's package wordnet-sense-index"):
        assets.senses()
    index.write_text("x")
    repository(monkeypatch, "senses", {f"{folder}/d0.naf": NAF for folder in assets.FOLDERS.values()})
    assets.senses()
    assert Path(assets.INDEX).read_text() == "x"
    table = Path("assets/senses/senseval2.tsv").read_text(encoding="utf-8")
    assert table.partition("\n")[2] == TABLE


@pytest.mark.parametrize("corpus", ["newswire", "propbank", "senses"])
def test_what_is_there_is_not_fetched(project: Path, monkeypatch: pytest.MonkeyPatch, corpus: str) -> None:
    files = dict.fromkeys(getattr(assets, corpus.upper()), hashlib.md5(b"x").hexdigest())
    monkeypatch.setattr(assets, corpus.upper(), files)
    monkeypatch.setitem(assets.REPOSITORIES, corpus, ("nowhere", "HEAD"))
    for path in files:
        (project / "data" / Path(path).name).write_bytes(b"x")
    for data in ("data", ""):
        getattr(assets, corpus)(data)
    assert all(Path(path).read_bytes() == b"x" for path in files)
