"""The interface that users of AllenNLP know: Elmo, batch_to_ids and ElmoEmbedder, with this package's biLM inside."""
