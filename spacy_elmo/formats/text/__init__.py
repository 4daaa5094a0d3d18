"""Text that strangers wrote: its files, their lines, their DocBins, and the words in them.

Pretraining, the commands, `allennlp` and `corpus` read text through this folder.
"""
