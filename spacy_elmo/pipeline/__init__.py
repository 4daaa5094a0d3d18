"""spaCy's side: the component `elmo`, and what reads what it writes on docs. No torch here."""

import catalogue
from spacy.util import registry

# spaCy's registry for span getters, which the config of `elmo` names. spaCy does not create it; spacy-transformers does
if not hasattr(registry, "span_getters"):
    setattr(registry, "span_getters", catalogue.create("spacy", "span_getters", entry_points=True))  # noqa: B010
