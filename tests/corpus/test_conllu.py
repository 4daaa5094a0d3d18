"""A sentence in CoNLL-U, as https://universaldependencies.org/format.html describes it: its words and their places."""

import tracemalloc

import pytest

from spacy_elmo.corpus.reading import Offsets, conllu_sentence
from spacy_elmo.formats.text import Unusable


def block(text: str | None, *rows: str) -> str:
    """The lines of a sentence. rows: number and form of each, with a blank between them."""
    comments = [] if text is None else [f"# text = {text}"]
    return "\n".join([*comments, *("\t".join([*row.split(" ", 1), "_"]) for row in rows), ""])


def read(text: str | None, *rows: str) -> tuple[list[str], Offsets | None]:
    [sentence], found, _ = conllu_sentence(block(text, *rows))
    assert found == text
    return sentence.tokens, sentence.offsets


def test_a_word_that_comes_again_has_a_place_of_its_own() -> None:
    words = ["the", "cat", "and", "the", "others", "then"]
    tokens, offsets = read("the cat and the others then", *(f"{i} {word}" for i, word in enumerate(words, 1)))
    assert tokens == words
    assert offsets == [(0, 3), (4, 7), (8, 11), (12, 15), (16, 22), (23, 27)]


def test_a_word_with_blanks_is_one_word_in_its_place() -> None:
    assert read("about 20 000 men", "1 about", "2 20 000", "3 men") == (
        ["about", "20_000", "men"],
        [(0, 5), (6, 12), (13, 16)],
    )


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("A dog .", ["1 A", "2 cat", "3 ."]),  # the text has another word
        ("A dog .", ["1 A", "2 .", "3 dog"]),  # it has them in another order
        ("du", ["1-3 du", "1 de", "2 le"]),  # the range is too long
        ("du vin", ["1-2 du", "1 de", "3 vin"]),  # a word of it is missing
        (None, ["1 A", "2 dog"]),
    ],
)
def test_words_that_are_not_in_the_text_have_no_places(text: str | None, rows: list[str]) -> None:
    tokens, offsets = read(text, *rows)
    assert tokens == [row.split(" ")[1] for row in rows if "-" not in row]
    assert offsets is None


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c", "\x1c"])
def test_lines_end_with_a_line_feed_alone(separator: str) -> None:
    """The format has no other line break, though Python's splitlines knows several."""
    tokens, offsets = read(f"one{separator}two", "1 one", "2 two")
    assert (tokens, offsets) == (["one", "two"], [(0, 3), (4, 7)])


def test_lines_of_another_system() -> None:
    [sentence], text, name = conllu_sentence("# sent_id = s\r\n# text = A dog\r\n1\tA\r\n2\tdog\r\n")
    assert (text, name, sentence.tokens, sentence.offsets) == ("A dog", "s", ["A", "dog"], [(0, 1), (2, 5)])


@pytest.mark.parametrize("line", ["1", "one\tone\t_", "1_\tone\t_", ""])
def test_a_line_without_a_number_and_a_word_is_refused(line: str) -> None:
    with pytest.raises(Unusable, match="no line of CoNLL-U"):
        conllu_sentence(f"1\tone\t_\n{line}\n2\ttwo\t_\n")


def test_a_range_of_many_words_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        assert read("x", "1-9999999 x", "1 x") == (["x"], None)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # bytes; a list of so many takes 80 MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("number", ["1000000000", "1-1000000000", "1-" + "9" * 5000])
def test_a_number_of_more_than_nine_digits_is_refused(number: str) -> None:
    with pytest.raises(Unusable, match="no line of CoNLL-U"):
        conllu_sentence(block("x", f"{number} x", "1 x"))
