"""The words of a corpus that are nearest to a word in a sentence: an index on disk, and exact search in it.

building.py writes an index, word_index.py reads it and searches. May be imported by the package's own __init__ and
cli.
"""
