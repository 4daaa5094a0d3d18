"""Thinc layers: the biLM, the mix, the listener, and the architectures made of them; what a doc has of the layers."""
