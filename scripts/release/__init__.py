"""Ship a biLM, and check what a release consists of."""
