"""The text of a run: from files to sentences, words and batches of numbers.

This folder calls no other folder of pretraining/. All of them, neighbours and the commands may call it.
"""
