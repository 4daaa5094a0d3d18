"""spaCy's registry `span_getters`, which spaCy itself does not make; spacy-transformers makes the same one."""

import catalogue
from spacy.util import registry

if not hasattr(registry, "span_getters"):
    setattr(registry, "span_getters", catalogue.create("spacy", "span_getters", entry_points=True))  # noqa: B010
