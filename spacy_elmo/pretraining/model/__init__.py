"""The biLM with its softmax and vocabulary: losses on sentences, model folders, smaller copies of them.

This folder calls text/. settings/, training/, run/, scoring.py and the commands may call it.
"""
