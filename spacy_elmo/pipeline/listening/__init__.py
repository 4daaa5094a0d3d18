"""The pipe's side of the listening handshake."""
