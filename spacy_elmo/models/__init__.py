"""Thinc layers: the biLM, the scalar mix, the listener, and the architectures that are built from them.

May be imported by corpus, neighbours, pipeline and tasks. The listener's side of the handshake with the pipe is in
listening/.
"""
