"""Configs of spaCy pipelines whose components listen to an elmo pipe. Only `elmo init-config` uses them."""
