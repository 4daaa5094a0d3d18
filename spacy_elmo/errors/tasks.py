"""Messages on the components of the paper's other tasks."""


class TaskMessages:
    """Message templates."""

    TASK_NO_EXAMPLES = (
        "the component {name!r} was initialised with {got} examples, none of which has {expected}. Give it examples "
        "with such annotations: nlp.initialize(lambda: examples)."
    )
    TASK_WEIGHTS = (
        "the saved weights of a component are not those of its network: {names} differ in name or shape. Load them "
        "with the settings that the component was saved with, as spacy.load does."
    )
