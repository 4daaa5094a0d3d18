"""Writers of the files of vectors, a file for each format. Only `corpus` calls them."""
