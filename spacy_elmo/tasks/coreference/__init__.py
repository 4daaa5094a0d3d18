"""Coreference: which spans of a doc speak of the same thing (Lee et al. 2017, made small)."""

from .annotations import annotate, clusters_of

__all__ = ["annotate", "clusters_of"]
