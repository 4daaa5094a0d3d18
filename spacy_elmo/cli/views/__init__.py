"""What commands show: rows, tables, progress and pictures.

Commands alone may call it. A view is given what it shows; it reads no text and trains nothing.
"""
