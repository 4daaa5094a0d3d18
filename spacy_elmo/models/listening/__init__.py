"""The task model's side of the handshake between listeners and their elmo pipe.

May be imported by models and pipeline. The handshake itself is told in pipeline/listening.
"""
