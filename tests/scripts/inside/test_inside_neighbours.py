"""Neighbours of ambiguous words in a corpus of three sentences."""

from pathlib import Path

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from scripts.inside.inside_neighbours import WORDS, Ambiguous, excerpt, find, main, read_words
from spacy_elmo import ElmoEmbedder
from spacy_elmo.analysis.neighbours import Neighbour
from spacy_elmo.errors import CommandError


def test_ten_words_stand_in_both_of_their_sentences() -> None:
    words = read_words(WORDS)
    assert len({one.word for one in words}) == 10
    for one in words:
        assert [sentence.split().count(one.word) for sentence in one.sentences.values()] == [1, 1]


def test_excerpt() -> None:
    words = [str(number) for number in range(20)]
    assert excerpt(Neighbour(0.5, 1, words, 8)) == {
        "before": ["6", "7"],
        "word": "8",
        "after": ["9", "10"],
    }
    assert excerpt(Neighbour(0.5, 1, ["a", "b"], 0)) == {"before": [], "word": "a", "after": ["b"]}


@pytest.mark.slow
def test_find(tmp_path: Path) -> None:
    sentences = ("They sat on the bank .", "The bank lent us money .", "Banks lend money .")
    paths = [tmp_path / f"{number}.spacy" for number in range(2)]
    for path, some in zip(paths, (sentences[:2], sentences[2:])):
        DocBin(docs=[Doc(Vocab(), words=text.split()) for text in some]).to_disk(path)
    embedder = ElmoEmbedder("en_mini")
    result = find([Ambiguous("bank", {"river": sentences[0], "money": "The bank lent me money ."})], paths, embedder)
    assert (result["layer"], result["tokens"], result["sentences"]) == (2, 16, 3)
    [word] = result["words"]
    # layer 0 of all other words, by the cosine
    types = dict.fromkeys(" ".join(sentences).split())
    vectors = {one: embedder.embed_sentence([one])[0, 0] for one in (*types, "bank")}
    units = {one: vector / (vector @ vector) ** 0.5 for one, vector in vectors.items()}
    cosines = {one: float(units[one] @ units["bank"]) for one in types if one != "bank"}
    assert [one["word"] for one in word["static"]] == sorted(cosines, key=lambda one: -cosines[one])[:5]
    river, money = word["senses"]
    assert len(river["neighbours"]) == len(money["neighbours"]) == 3  # one of each sentence
    assert money["neighbours"][0]["number"] == 2
    assert money["neighbours"][0]["word"] == "bank"
    assert money["neighbours"][0]["after"] == ["lent", "us"]


def test_without_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=r"en_ewt-ud-train\.spacy: no such file"):
        main()
