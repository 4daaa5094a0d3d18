"""Roles in CoNLL-2005's columns become docs: predicates and roles as a person reads them in the file."""

from pathlib import Path

import pytest
from role_cases import roles_in
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from scripts.corpora.convert_roles import main, to_docs
from spacy_elmo.errors import CorpusError

SENTENCES = (
    "# sent_id = one\n"
    "President\tNNP\tPROPN\t-\t-\t(ARG0*\t*\n"
    "Bush\tNNP\tPROPN\t-\t-\t*)\t*\n"
    "named\tVBD\tVERB\tname\tname.01\t(V*)\t*\n"
    "people\tNNS\tNOUN\t-\t-\t(ARG1*)\t(ARG0*)\n"
    "to\tTO\tPART\t-\t-\t(C-ARG1*\t*\n"
    "help\tVB\tVERB\thelp\thelp.01\t*)\t(V*)\n\n"
    "# sent_id = two\n# text = #\n#\tNN\tSYM\t-\t-\n\n"
)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_roles(tmp_path: Path) -> None:
    first, second = to_docs(written(tmp_path / "x", SENTENCES))
    assert [token.text for token in first] == ["President", "Bush", "named", "people", "to", "help"]
    assert roles_in(first) == {
        2: [(0, 2, "ARG0"), (2, 3, "V"), (3, 4, "ARG1"), (4, 6, "C-ARG1")],
        5: [(3, 4, "ARG0"), (5, 6, "V")],
    }
    assert second.text.strip() == "#"
    assert (list(second.spans), len(second.spans["predicates"])) == (["predicates"], 0)  # annotated: it has none
    assert len(list(first.sents)) == 1


def test_a_corpus_keeps_them(tmp_path: Path) -> None:
    main(written(tmp_path / "x", SENTENCES), tmp_path / "x.spacy")
    first, second = DocBin().from_disk(tmp_path / "x.spacy").get_docs(Vocab())
    assert sorted(roles_in(first)) == [2, 5]
    assert "predicates" in second.spans


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tX\tX\t-\n", "line 1: .* two tags"),
        ("a\tX\tX\tgo\tgo.01\t(V*)\nb\tX\tX\t-\t-\n", "line 2: .* as many columns"),
        ("\n\na\tX\tX\tgo\tgo.01\n", "line 3: 0 columns of roles. Expected 1"),
        ("a\tX\tX\tgo\tgo.01\t(V*\n", "line 1: the role is"),
        ("a\tX\tX\tgo\tgo.01\t(V*)\nb\tX\tX\t-\t-\t*)\n", r"line 2: the role is '\*\)'"),
        ("a\tX\tX\tgo\tgo.01\t(V*\nb\tX\tX\t-\t-\t(ARG0*))\n", "line 2: the role is"),
        ("a\tX\tX\tgo\tgo.01\t(V*\nb\tX\tX\t-\t-\t(ARG0*)\n", "line 2: the role is"),
        ("a\tX\tX\tgo\tgo.01\tV\n", "line 1: the role is 'V'"),
        ("", "no sentences in it"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        main(written(tmp_path / "bad", text), tmp_path / "x.spacy")
    assert not (tmp_path / "x.spacy").exists()
