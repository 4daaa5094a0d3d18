"""What AllenNLP's users know: Elmo, batch_to_ids and ElmoEmbedder, over this package's network and engine.

May be imported by the package's own __init__ and by cli.
"""
