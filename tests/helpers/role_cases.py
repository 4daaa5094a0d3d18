"""Docs with semantic roles."""

from collections.abc import Mapping, Sequence

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from tasks import PLAIN

Roles = Mapping[int, Sequence[tuple[int, int, str]]]
GIVEN = (
    (
        "Mary gave John a book and left early",
        {
            1: [(0, 1, "ARG0"), (1, 2, "V"), (2, 3, "ARG2"), (3, 5, "ARG1")],
            6: [(0, 1, "ARG0"), (6, 7, "V"), (7, 8, "ARGM-TMP")],
        },
    ),
    ("The dog slept", {2: [(0, 2, "ARG0"), (2, 3, "V")]}),
    ("A fine day", {}),
)
SMALL = {"@architectures": "spacy-elmo.SemanticRoles.v1", "lstm_width": 12, "depth": 1, "tok2vec": PLAIN}


def doc_with(words: str | Sequence[str], roles: Roles | None, vocab: Vocab | None = None) -> Doc:
    """A doc with the roles of its predicates; None: nobody has annotated it."""
    doc = Doc(vocab or Vocab(), words=words.split() if isinstance(words, str) else list(words))
    if roles is not None:
        doc.spans["predicates"] = [doc[token : token + 1] for token in roles]
        for token, spans in roles.items():
            doc.spans[f"roles:{token}"] = [Span(doc, start, end, label=label) for start, end, label in spans]
    return doc


def example(words: str | Sequence[str], roles: Roles | None, vocab: Vocab | None = None) -> Example:
    """An example whose processed doc has no annotations yet."""
    doc = doc_with(words, roles, vocab)
    return Example(Doc(doc.vocab, words=[token.text for token in doc]), doc)


def roles_in(doc: Doc) -> dict[int, list[tuple[int, int, str]]]:
    """The roles of each predicate in a doc."""
    return {
        span.start: [(part.start, part.end, part.label_) for part in doc.spans.get(f"roles:{span.start}", [])]
        for span in doc.spans.get("predicates", [])
    }


def examples(nlp: Language) -> list[Example]:
    """Examples of GIVEN, in a pipeline's vocabulary."""
    return [example(words, roles, nlp.vocab) for words, roles in GIVEN]


def trained() -> Language:
    """A pipeline with a small component that has learned GIVEN by heart."""
    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("xx")
    nlp.add_pipe("semantic_roles", config={"model": SMALL})
    given = examples(nlp)
    optimizer = nlp.initialize(lambda: given)
    optimizer.learn_rate = 0.02
    for _ in range(60):
        nlp.update(given, sgd=optimizer)
    return nlp
