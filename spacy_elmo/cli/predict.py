"""`elmo predict`: the words that a biLM expects at each place of a sentence."""

import spacy
from spacy.cli._util import Arg, Opt

from ..analysis.prediction import predict_words
from ..corpus.bilm import BiLMChoice
from ..modules.loading import EMBEDDED
from .console import msg, print_json
from .shared import Json, Lang


def predict(
    text: str = Arg(..., metavar="TEXT", help="A sentence"),
    model: str = Opt(EMBEDDED, "--model", "-m", metavar="MODEL", help="Folder or name of a biLM that has a softmax"),
    top: int = Opt(5, min=1, metavar="N", help="Words for each place"),
    lang: Lang = None,
    as_json: Json = False,
) -> None:
    """Show which words the biLM expects at each place.

    Forward: from the words before the place alone. Backward: from those after it. Both: from all other words.
    """
    doc = spacy.blank(lang or BiLMChoice(model).language)(text)
    found = [predict_words(doc, i, top, model) for i in range(len(doc))]
    if as_json:
        print_json([{"word": token.text} | words._asdict() for token, words in zip(doc, found)])
        return
    shown = [[" ".join(f"{word} {100 * p:.3g}%" for word, p in words) for words in places] for places in found]
    rows = [(token.text, *places) for token, places in zip(doc, shown)]
    msg.table(rows, header=("word", "forward", "backward", "both"), divider=True, max_col=60)
