"""spaCy's side: the component `elmo`, what it writes on docs, and what reads them. No torch here.

May be imported by cli, corpus and explore. Everybody else gets at it through spaCy.
"""
