"""The components' side of listening: the listener layer, and what it shares with its elmo pipe.

May be imported by pipeline; spacy_elmo/pipeline/listening/__init__.py tells the protocol.
"""
