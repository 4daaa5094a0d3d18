"""Text that strangers wrote: its files, their lines, their DocBins, and the words in them.

May be imported by allennlp, analysis, cli, corpus, neighbours, pipeline and pretraining.
"""
