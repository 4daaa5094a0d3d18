"""Thinc layers: the biLM, the scalar mix, the listener, and the architectures that are built from them."""
