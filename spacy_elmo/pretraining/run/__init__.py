"""A run from its first update to its last: its folder, checkpoints, evaluations, model cards and reports.

It stands on all other rooms of pretraining; commands call it.
"""
