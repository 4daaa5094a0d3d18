"""ELMo for spaCy."""

__version__ = "0.1.0"
