"""Messages on the components of the paper's other tasks."""


class TaskMessages:
    """Message templates."""

    TASK_NO_EXAMPLES = (
        "the component {name!r} was initialised with {got} examples, none of which has {expected}. Give it examples "
        "with such annotations: nlp.initialize(lambda: examples)."
    )
