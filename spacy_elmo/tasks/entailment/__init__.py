"""Entailment: whether a hypothesis follows from a premise, contradicts it, or neither."""
