"""The published biLMs: their sizes, and their names with addresses and folders."""
