"""Train or make what is compared with the embedded biLM."""
