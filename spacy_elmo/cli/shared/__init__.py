"""What several commands need: the console, paths, texts and pipelines, signals, errors, downloads.

Commands and views call this folder. It calls neither.
"""
