"""spaCy's side: the component `elmo`, what it writes on docs, and what reads them. No torch here.

May be imported by the package's own __init__, cli and corpus. Everybody else gets at it through spaCy.
"""
