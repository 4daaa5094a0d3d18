"""Texts in NAF become tables, and files that are there are used."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from scripts.assets import get_senses
from scripts.assets.get_senses import INDEX, TABLES, lines_of, main, write_table
from spacy_elmo.errors import CorpusError, DownloadError

NAF = """<?xml version='1.0' encoding='UTF-8'?>
<NAF xml:lang="en"><text>
<wf id="w0" sent="1">The</wf><wf id="w1" sent="1">bank</wf><wf id="w2" sent="1">&amp;</wf><wf id="w3" sent="2">gave
</wf><wf id="w4" sent="2">up</wf></text><terms>
<term id="t1" lemma="the" pos="DT"><span><target id="w0"/></span></term>
<term id="t2" lemma="bank" pos="NN"><span><target id="w1"/></span><externalReferences>
<externalRef resource="own" reftype="original_id" reference="d0.1"/>
<externalRef resource="WordNet-2.1" reftype="sense" reference="bank%1:14:00::"/></externalReferences></term>
<term id="t3" lemma="give_up" pos="VB"><span><target id="w3"/><target id="w4"/></span><externalReferences>
<externalRef resource="W" reftype="sense_number" reference="1"/>
<externalRef resource="W" reftype="lexical_key" reference="2:40:00::"/></externalReferences></term>
</terms></NAF>
"""
LINES = [
    "# a/d0 sent 1",
    "The\tthe\tDT\t-",
    "bank\tbank\tNN\tWordNet-2.1:sense:bank%1:14:00::",
    "&\t-\t-\t-",
    "",
    "# a/d0 sent 2",
    "gave\tgive_up\tVB\tW:sense_number:1 W:lexical_key:2:40:00::",
    "up\tgive_up\tVB\tW:sense_number:1 W:lexical_key:2:40:00::",
    "",
]


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "d0.naf"
    path.write_text(NAF, encoding="utf-8")
    assert list(lines_of(path, "a/d0")) == LINES


def test_table(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "d0.naf").write_text(NAF, encoding="utf-8")
    write_table(tmp_path, tmp_path / "new" / "table.tsv")
    head, *lines = (tmp_path / "new" / "table.tsv").read_text(encoding="utf-8").splitlines()
    assert head.startswith("# token\t")
    assert lines == LINES


def test_bad_texts(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no sentences in it"):
        write_table(tmp_path, tmp_path / "table.tsv")
    (tmp_path / "d0.naf").write_text("<NAF>", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"d0\.naf: can't be read .* in NAF"):
        write_table(tmp_path, tmp_path / "table.tsv")
    assert not (tmp_path / "table.tsv").exists()


def test_files_of_a_folder_need_not_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checksum = hashlib.md5(b"x").hexdigest()
    monkeypatch.setattr(get_senses, "TABLES", {"a.tsv": TABLES["senseval2.tsv"]._replace(checksum=checksum)})
    monkeypatch.setattr(get_senses, "INDEX_CHECKSUM", checksum)
    (tmp_path / "data").mkdir()
    for name in ("a.tsv", INDEX):
        (tmp_path / "data" / name).write_bytes(b"x")
    main(tmp_path, str(tmp_path / "data"), "nowhere", "HEAD", tmp_path / "nothing")
    assert sorted(path.name for path in (tmp_path / "assets/senses").iterdir()) == ["a.tsv", INDEX]


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="install Debian's package wordnet-sense-index"):
        main(tmp_path, "", "nowhere", "HEAD", tmp_path / "nothing")
    assert not (tmp_path / "assets").exists()


@pytest.mark.slow
def test_fetched_and_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "corpora" / "texts"
    texts.mkdir(parents=True)
    (texts / "d0.naf").write_text(NAF, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(texts.parent), *arguments], check=True, capture_output=True)
    monkeypatch.setattr(get_senses, "TABLES", {"a.tsv": TABLES["senseval2.tsv"]._replace(folder="texts")})
    (tmp_path / INDEX).write_bytes(b"x")
    main(tmp_path, "", str(texts.parent), "HEAD", tmp_path / INDEX)
    table = (tmp_path / "assets/senses/a.tsv").read_text(encoding="utf-8")
    assert table.splitlines()[1:] == [line.replace("a/d0", "d0") for line in LINES]
    assert (tmp_path / "assets/senses" / INDEX).read_bytes() == b"x"
    assert capsys.readouterr().out.count("warning:") == 2  # neither is the file that was measured
