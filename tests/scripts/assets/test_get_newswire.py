"""Articles of Worldwide Newswire become a file for each part."""

import subprocess
from pathlib import Path

import pytest

from scripts.assets import get_newswire
from scripts.assets.get_newswire import lines_of, main, part_of, write_parts
from scripts.corpora.convert_conll import read_sentences
from spacy_elmo.errors import CorpusError, DownloadError

ARTICLE = "A\tB-Organization\tB-Location\nb  c \tO\n\n\nd   O\n\t\n"


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(ARTICLE, encoding="utf-8")
    assert list(lines_of(path)) == ["-DOCSTART- O", "", "A\tB-Location", "b__c\tO", "", "d___O\tO", ""]


def test_parts_are_those_of_the_md5() -> None:
    # md5sum of processed_annotated/NAME, modulo 20: 5, 4, 2, 1
    parts = [part_of(f"af_afrol_{number}.txt.tsv") for number in (1, 12, 54, 5)]
    assert parts == ["train", "train", "dev", "test"]


@pytest.fixture
def repository(tmp_path: Path) -> str:
    folder = tmp_path / "corpus" / "processed_annotated"
    folder.mkdir(parents=True)
    for number in range(40):
        (folder / f"{number}.tsv").write_text(f"word{number}\tO\n", encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder.parent), *arguments], check=True, capture_output=True)
    return str(folder.parent)


@pytest.mark.slow
def test_every_article_is_in_one_part(repository: str, tmp_path: Path) -> None:
    main(tmp_path, "", repository, "HEAD")
    found = []
    for part in get_newswire.CHECKSUMS:
        path = tmp_path / f"assets/worldwide_newswire/newswire.{part}.conll"
        words = [words for words, _ in read_sentences(path)]
        assert all(part_of(f"{word.removeprefix('word')}.tsv") == part for [word] in words)
        found += words
    assert sorted(found) == sorted([f"word{number}"] for number in range(40))


def test_no_articles(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no sentences in it"):
        write_parts(tmp_path, {"train": tmp_path / "assets" / "train.conll"})
    assert not (tmp_path / "assets").exists()


def test_git_fails(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"can't be fetched with git .*newswire\.dev\.conll.*--vars\.data"):
        main(tmp_path, "", str(tmp_path / "nowhere"), "HEAD")
    assert not (tmp_path / "assets").exists()


@pytest.mark.slow
def test_other_articles_are_told(repository: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(tmp_path, "", repository, "HEAD")
    assert capsys.readouterr().out.count("warning: ") == 3  # these are not the files that the results were made with
