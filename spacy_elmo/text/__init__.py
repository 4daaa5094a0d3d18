"""The text stream: whatever holds text comes in here, and documents of words come out.

Files are found, unpacked and divided into lines (files.py), and lines into items: lines, rows of a table, sentences of
annotated words (tables.py), docs (stream.py). `Parser` in stream.py makes a document of an item, and words.py splits a
text into words. One bad item never decides about another one: it is told with its file and line.
"""
