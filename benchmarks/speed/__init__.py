"""Tokens per second of the engine and of `nlp.pipe`, seconds to the first vector and of an epoch of a task."""
