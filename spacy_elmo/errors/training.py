"""Messages on pretraining."""


class TrainingMessages:
    """Message templates."""

    CONFIG_SECTION = "{path}: the section [{section}] is missing. Expected [paths], [bilm] and [training]; got {got}."
    CONFIG_PATH = "{path}: paths.{name} is {got}, which is no file. Expected text, one sentence a line."
    CONFIG_UNKNOWN = "{path}: unknown settings in [training]: {got}. Expected some of {expected}."
    CONFIG_NUMBER = "training.{name} is {got!r}. Expected {expected}."
    FEW_SENTENCES = (
        "the training text has {got} sentences, but training.streams is {streams}. Expected a sentence for each stream "
        "at least: set training.streams lower, or give more text."
    )
    FEW_WORDS = (
        "the training text has {got} different words, the special three counted, but training.n_words is {n_words}. "
        "Set training.n_words to {got} or less."
    )
    TEXT_EMPTY = "{path}: no words. Expected text, one sentence a line, words separated by blanks."
    TEXT_UNREADABLE = "{path}: can't be read ({reason}). Expected text in UTF-8, plain or .xz."
    CONFIG_UNREADABLE = "{path}: not a configuration ({reason})."
    DIVERGED = (
        "the loss of step {step} is not finite: training has diverged. Begin anew with a lower training.learning_rate; "
        "{path} is of an earlier step."
    )
    CHECKPOINT_PARTS = (
        "{path}: not a checkpoint of this run ({problems}). Delete it to begin anew, or put the right one there."
    )
    RUN_DIFFERS = (
        "{path}: this run was begun with {key} = {old}, but now it is {new}. Set it back to go on, or give another "
        "output folder to begin anew."
    )
    CHECKPOINT = "{path}: can't be read ({reason}). Delete it to begin anew, or put a whole one there."
    RUN_MISSING = "{path}: no corpus in it. Expected the folder that `spacy elmo pretrain` made."
