"""The settings of a run: sections with their defaults and help texts, checks, and the configuration file.

It may call text/ and model/; training/, run/ and commands may call it.
"""
