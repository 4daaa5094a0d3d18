"""A copy of the biLM for each component, so that components run without the elmo pipe."""

from collections.abc import Callable

from spacy.language import Language

from ..elmo import ElmoPipe


def build_replace_listeners() -> Callable[[Language], Language]:
    """Build spacy-elmo.ReplaceListeners.v1 for [nlp.after_pipeline_creation], which replaces all listeners.

    `spacy debug model` runs a component without the pipes before it, so it needs components that do not listen.

    Each listener in the `model.tok2vec` of a component is replaced by a copy of its elmo pipe's biLM, as
    `nlp.replace_listeners` does.
    """

    def after_pipeline_creation(nlp: Language) -> Language:
        for name, pipe in nlp.components:
            if isinstance(pipe, ElmoPipe):
                for component, listeners in list(pipe.listener_map.items()):
                    nlp.replace_listeners(name, component, ["model.tok2vec"] * len(listeners))
        return nlp

    return after_pipeline_creation
