"""The component `semantic_roles`: who did what to whom, for each predicate of a doc."""

from .annotations import Role, roles_displacy, roles_table

__all__ = ["Role", "roles_displacy", "roles_table"]
