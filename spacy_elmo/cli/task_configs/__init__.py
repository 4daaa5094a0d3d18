"""Training configs of pipelines whose components listen to an elmo pipe."""
