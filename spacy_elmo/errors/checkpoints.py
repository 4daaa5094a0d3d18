"""Messages on checkpoints, and on the lock of a run's folder."""


class CheckpointMessages:
    """Message templates."""

    CHECKPOINT_FORMAT = "{path}: not a checkpoint. Expected a file that spacy elmo pretrain wrote."
    CHECKPOINT_DAMAGED = "{path}: can't be used ({reason}). Expected a checkpoint as it was written."
    CHECKPOINT_STEP = "{path}: a checkpoint of step {got}. Expected that of step {expected}: it was renamed."
    CHECKPOINT_PLACE = (
        "a checkpoint has the stream {stream} at {place}, where this run's text has nothing. It is not of this run: "
        "delete it, and the one before is used, or begin anew in another output folder."
    )
    CHECKPOINT_ARRAY = "{path}: the array {name} can't be kept ({reason}). Expected numbers."
    CHECKPOINT_FULL = (
        "{path}: can't be written ({reason}): it needs {needed:,} bytes; free on the disk are {free:,}. Make room, "
        "or raise the quota or the limit, and go on from the checkpoint before with the same command."
    )
    CHECKPOINT_BEFORE = "{problem} The one before is used."
    CHECKPOINTS_ALL = (
        "{folder}: no checkpoint can be used. Delete them to begin anew, or put a whole one there. {problems}"
    )
    RUN_LOCKED = (
        "{folder}: another run writes there, {holder}. Wait for its end, stop it, or give another output folder."
    )
