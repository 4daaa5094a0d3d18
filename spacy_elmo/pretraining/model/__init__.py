"""The biLM with its softmax and its words: losses, the folders that hold them, smaller copies.

It may call text/; settings/, training/, run/, scoring.py and commands may call it.
"""
