"""The text of a run: from files to sentences, words and batches of numbers.

It calls no other room of pretraining; all of them may call it.
"""
