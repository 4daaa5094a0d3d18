"""spaCy's side."""
