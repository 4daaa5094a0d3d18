"""Messages on the configuration of a pretraining run, and on what the run writes of itself."""


class ConfigMessages:
    """Message templates."""

    CONFIG_VALUE = "{key} is {got}. Expected {expected}."
    CONFIG_IN_FILE = "{path}: {error}"
    CONFIG_UNREADABLE = "not a configuration ({reason}). Expected sections and settings as spaCy's configs have."
    CONFIG_MISSING = "{key} is missing. Expected a value for it: set it in the file, or with --{key} VALUE."
    CONFIG_NO_BILM = (
        "the section [bilm] is missing. Expected the sizes of the biLM, with the same keys as options.json, or "
        "paths.init: the folder of a biLM to start from, whose sizes are then used."
    )
    CONFIG_UNKNOWN = "no such settings: {got}. Expected the names that spacy elmo init-pretrain-config writes."
    CONFIG_UNKNOWN_OPTION = (
        "no such settings: {got}, given on the command line. Expected the names that spacy elmo init-pretrain-config "
        "writes."
    )
    CONFIG_SOURCE = "paths.{name}: {error}"
    CONFIG_OVERRIDE = "--{key}: expected a setting in a section, like --training.epochs 2."

    METRICS_LINE = (
        "{path}: line {line} is not the row of an evaluation ({reason}). Expected one JSON object a line, as the run "
        "wrote it: correct that line, or move the file away."
    )
    METRICS_UNREADABLE = "{path}: can't be read ({reason}). Expected the evaluations of a run, one JSON object a line."
    RESTART_FILE = "{path}: a file. Expected the folder of a run, or a new one: give another name."
    PRETRAIN_INTERRUPTED = "stopped at once. Run {command} again: it goes on from the last checkpoint, if there is one."
