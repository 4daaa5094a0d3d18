"""`elmo predict`: the words that a biLM expects at each place of a sentence."""

import re

from spacy.cli._util import Arg, Opt

from ..analysis.prediction import predictions
from ..corpus.bilm import BiLMChoice
from ..errors import CommandError
from ..modules.loading import EMBEDDED
from ..pretraining.vocabulary import SPECIAL, UNKNOWN
from ..text.words import blank
from . import shared
from .console import msg, print_json

_IN_LINE = 2  # words of a column in one line of the table
_GAP = re.compile(r"(\b_{2,}\b|\[MASK\]|<mask>)")  # and BERT's, and RoBERTa's


def predict(
    text: str = Arg(..., metavar="TEXT", help="A sentence; ___ in it is a gap to fill"),
    model: str = Opt(EMBEDDED, "--model", "-m", metavar="MODEL", help="Folder or name of a biLM that has a softmax"),
    top: int = Opt(5, min=1, metavar="N", help="Words for each place"),
    lang: shared.LangOfCard = None,
    as_json: shared.Json = False,
) -> None:
    """Of a sentence with gaps, such as "The ___ of the river", only the words that fit there are shown.

    Forward: from the words before the place alone. Backward: from those after it. Both: from all other words.
    """
    nlp = blank(lang or BiLMChoice(model).language)
    words: list[str] = []
    gaps = []  # whatever stands there is not read for its own place
    for part in _GAP.split(text.encode("utf8", "replace").decode()):  # of another encoding
        if _GAP.fullmatch(part):
            gaps.append(len(words))
            words.append(part)
        else:
            words += [token.text for token in nlp(part) if not token.is_space]
    if not words:
        raise CommandError(f"TEXT is {text!r}, which has no words. Expected a sentence.")
    chosen = gaps or range(len(words))
    found = list(predictions(words, top, model, chosen))
    if as_json:
        print_json([{"word": words[i]} | place._asdict() for i, place in zip(chosen, found)])
        return
    rows = []
    for i, places in zip(chosen, found):
        shown = [[f"{expected} {100 * p:.3g}%" for expected, p in place] for place in places]
        for start in range(0, len(shown[0]), _IN_LINE):
            rows.append(["" if start else words[i], *(" ".join(place[start : start + _IN_LINE]) for place in shown)])
    msg.table(rows, header=("word", "forward", "backward", "both"))
    if any(word == SPECIAL[UNKNOWN] for places in found for place in places for word, _ in place):
        msg.text(f"{SPECIAL[UNKNOWN]}: any word that is not in the biLM's vocabulary")
