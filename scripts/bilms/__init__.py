"""Measures the biLMs that the project ships: perplexities, tags, bytes, and what fewer bits cost."""
