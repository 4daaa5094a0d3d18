"""What commands show: rows, tables, progress and pictures.

Only commands call this folder. A view shows its arguments; it reads no text and trains nothing.
"""
