"""The model's side of the listening handshake; see pipeline/listening."""
