"""Word senses by the nearest neighbour (Peters et al. 2018, section 5.3)."""
