"""A run from its first update to its last: its folder, checkpoints, evaluations, model cards and reports.

This folder calls all other folders of pretraining/. The commands call it.
"""
