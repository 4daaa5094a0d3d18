"""Files of the tasks: copied from a folder, fetched from an address or with git, or named if neither has them."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from role_cases import roles_in
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from scripts.assets import get_assets, get_newswire, get_propbank, get_senses
from scripts.corpora import convert_roles
from spacy_elmo.errors import CommandError, CorpusError, DownloadError

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
def project(tmp_path: Path) -> Path:
    """A project with two assets, whose addresses are files."""
    (tmp_path / "scripts" / "assets").mkdir(parents=True)
    rows = [
        f"assets/x/{name}\t{hashlib.md5(text).hexdigest()}\t{tmp_path}/there/{name}" for name, text in TEXTS.items()
    ]
    (tmp_path / get_assets.TABLE).write_text("\n".join(["dest\tchecksum\turl", *rows, ""]))
    for folder in ("there", "data"):
        (tmp_path / folder).mkdir()
    return tmp_path


def repository(folder: Path, files: dict[str, str]) -> str:
    """Make a repository of these files, and return its address."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
    return str(folder)


def test_from_a_folder_and_the_rest_from_the_address(project: Path) -> None:
    (project / "data" / "deep").mkdir()
    (project / "data" / "a.txt").write_bytes(b"another file of this name\n")
    (project / "data" / "deep" / "a.txt").write_bytes(TEXTS["a.txt"])
    (project / "there" / "b.txt").write_bytes(TEXTS["b.txt"])  # a.txt is not there
    get_assets.main(["x"], project, str(project / "data"))
    assert {path.name: path.read_bytes() for path in (project / "assets/x").iterdir()} == TEXTS


def test_what_does_not_come_is_named(project: Path) -> None:
    (project / "there" / "b.txt").write_bytes(b"not what it was\n")
    with pytest.raises(DownloadError, match=r"(?s)assets/x/a\.txt \(MD5 .*from .*assets/x/b\.txt"):
        get_assets.main(["x"], project)
    with pytest.raises(CommandError, match=r"assets/y: no files there\. Expected some of the folders x"):
        get_assets.main(["y"], project)
    with pytest.raises(CommandError, match="no such folder"):
        get_assets.main(["x"], project, str(project / "none"))


def test_prepared_files_stand_for_their_originals(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = {"assets/x/p.tsv": hashlib.md5(b"p").hexdigest()}
    monkeypatch.setattr(get_assets, "PREPARED", [(prepared, ("assets/x/a.txt", "assets/x/b.txt"))])
    sources = [Path("assets/y/c"), Path("assets/x/a.txt"), Path("assets/x/b.txt")]
    assert get_assets.prepared_or_given(sources, project) == sources
    (project / "data" / "p.tsv").write_bytes(b"p")
    get_assets.main(["x"], project, str(project / "data"))
    assert get_assets.prepared_or_given(sources, project) == [Path("assets/y/c"), Path("assets/x/p.tsv")]


def test_words_and_roles_are_joined(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = repository(project / "git", {"data/google/ewt/weblog/00/a.xml.gold_skel": ROLES})
    for part in ("train", "dev", "test"):
        path = project / f"assets/ud_english_ewt/en_ewt-ud-{part}.conllu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS, encoding="utf-8")
    get_propbank.main(project, "", address, "HEAD")
    convert_roles.main(project / "assets/propbank_ewt/propbank_ewt_dev.conll", project / "dev.spacy")
    [doc] = DocBin().from_disk(project / "dev.spacy").get_docs(Vocab())  # the other sentence does not agree
    assert roles_in(doc) == {1: [(0, 1, "ARG0"), (1, 2, "V"), (2, 3, "ARGM-NEG")]}
    assert capsys.readouterr().out.count("warning: ") == 3  # these are not the files that the results were made with


def test_every_article_is_in_one_part(project: Path) -> None:
    articles = {f"processed_annotated/{n}.tsv": f"word {n}\tO\tB-LOC\n" for n in range(40)}
    get_newswire.main(project, "", repository(project / "git", articles), "HEAD")
    found = []
    for part in ("train", "dev", "test"):
        text = (project / f"assets/worldwide_newswire/newswire.{part}.conll").read_text(encoding="utf-8")
        words = [line.split("\t")[0] for line in text.splitlines() if line.endswith("\tB-LOC")]
        assert all(get_newswire.part_of(f"{word.removeprefix('word_')}.tsv") == part for word in words)
        found += words
    assert sorted(found) == sorted(f"word_{n}" for n in range(40))


def test_senses(project: Path) -> None:
    files = {f"{folder}/d0.naf": NAF for folder in get_senses.FOLDERS.values()}
    index = project / "index.sense"
    with pytest.raises(DownloadError, match="install Debian's package wordnet-sense-index"):
        get_senses.main(project, "", "nowhere", "HEAD", index)
    index.write_text("x")
    get_senses.main(project, "", repository(project / "git", files), "HEAD", index)
    assert (project / get_senses.INDEX).read_text() == "x"
    table = (project / "assets/senses/senseval2.tsv").read_text(encoding="utf-8")
    assert table.partition("\n")[2] == TABLE


def test_what_is_there_is_not_fetched(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (get_newswire, get_propbank, get_senses):
        files = dict.fromkeys(module.FILES, hashlib.md5(b"x").hexdigest())
        monkeypatch.setattr(module, "FILES", files)
        for path in files:
            (project / "data" / Path(path).name).write_bytes(b"x")
        for data in (str(project / "data"), ""):
            module.main(project, data, "nowhere")
        assert all((project / path).read_bytes() == b"x" for path in files)


def test_no_connection_and_no_texts(project: Path) -> None:
    with pytest.raises(DownloadError, match=r"can't be fetched with git .*--vars\.data"):
        get_newswire.main(project, "", str(project / "nowhere"))
    address = repository(project / "git", {"processed_annotated/x": ""})
    with pytest.raises(CorpusError, match="no articles in it"):
        get_newswire.main(project, "", address, "HEAD")
