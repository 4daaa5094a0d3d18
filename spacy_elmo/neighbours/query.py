"""Finds the word of a sentence whose neighbours are asked for."""

from collections.abc import Sequence

from ..allennlp.encoding import split_texts
from ..errors import ElmoError, Errors, SettingsError, shown


def find_word(sentence: str | Sequence[str], word: str, occurrence: int, lang: str | None) -> tuple[list[str], int]:
    """Return the words of a sentence, and the index of a word in them.

    sentence: a text, or a list of words.
    word: exactly as it is in the sentence.
    occurrence: which one if it occurs several times, from 1.
    lang: of the spaCy tokenizer that splits the text; None: it is split at blanks.

    Raises ElmoError if the sentence can't be split, or the word does not occur in it that often.
    """
    words = split_texts([sentence], lang)[0]
    places = [place for place, other in enumerate(words) if other == word]
    if not places:
        how = "at blanks" if lang is None else f"by spaCy's tokenizer for {lang}"
        remedy = " With a language (lang or --lang), punctuation is split off." if lang is None else ""
        raise ElmoError(
            Errors.QUERY_WORD.format(word=shown(word), words=shown(" ".join(words)), how=how, remedy=remedy)
        )
    if not 1 <= occurrence <= len(places):
        raise SettingsError(Errors.QUERY_OCCURRENCE.format(got=occurrence, word=shown(word), n=len(places)))
    return words, places[occurrence - 1]
