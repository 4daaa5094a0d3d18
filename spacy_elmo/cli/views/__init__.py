"""What commands show: rows, tables, progress and pictures."""
