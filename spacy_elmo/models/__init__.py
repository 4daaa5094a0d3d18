"""Thinc layers and the shim around a biLM: docs in, arrays out.

May be imported by pipeline and tasks. Components that are configured get at them through spaCy's registries.
"""
