"""Creates spaCy's registry `span_getters`, unless it exists: spaCy does not create it, but spacy-transformers does."""

import catalogue
from spacy.util import registry

if not hasattr(registry, "span_getters"):
    setattr(registry, "span_getters", catalogue.create("spacy", "span_getters", entry_points=True))  # noqa: B010
