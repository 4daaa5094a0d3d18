"""What AllenNLP's users know: Elmo, batch_to_ids and ElmoEmbedder, over this package's network and engine."""
