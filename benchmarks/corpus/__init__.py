"""How fast whole corpora are embedded, what the files take, and how much memory it needs."""
