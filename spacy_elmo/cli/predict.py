"""`elmo predict`: the words that a biLM expects at each place of a sentence."""

from spacy.cli._util import Arg, Opt
from spacy.tokens import Doc

from ..analysis.prediction import predict_words
from ..corpus.bilm import BiLMChoice
from ..errors import CommandError
from ..formats.text import blank
from ..modules.loading import EMBEDDED
from .console import msg, print_json
from .shared import Json, Lang

MOST_WORDS = 200  # each place takes a pass over the vocabulary


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
    doc = blank(lang or BiLMChoice(model).language)(text.encode("utf8", "replace").decode())
    words = [token.text for token in doc if not token.is_space]
    if not 0 < len(words) <= MOST_WORDS:
        raise CommandError(f"TEXT has {len(words):,} words. Expected a sentence, of 1 to {MOST_WORDS:,} words.")
    doc = Doc(doc.vocab, words=words)
    found = [predict_words(doc, i, top, model) for i in range(len(doc))]
    if as_json:
        print_json([{"word": word} | predictions._asdict() for word, predictions in zip(words, found)])
        return
    shown = [[" ".join(f"{word} {100 * p:.3g}%" for word, p in place) for place in places] for places in found]
    rows = [(word, *places) for word, places in zip(words, shown)]
    msg.table(rows, header=("word", "forward", "backward", "both"), divider=True, max_col=60)
