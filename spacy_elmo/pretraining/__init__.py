"""Training of one's own biLM."""
