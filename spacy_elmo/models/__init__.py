"""Thinc layers: the biLM, the mix, the listener, and the architectures made of them; where the layers of a doc are."""
