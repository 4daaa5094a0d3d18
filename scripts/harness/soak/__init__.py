"""Endurance: many docs, many threads, many loads, little memory, and kills at random moments."""
