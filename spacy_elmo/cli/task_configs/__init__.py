"""Configs of spaCy pipelines whose components listen to an elmo pipe; `elmo init-config` alone calls it."""
