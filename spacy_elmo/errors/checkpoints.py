"""Messages on checkpoints, and on the lock of a run's folder."""


class CheckpointMessages:
    """Message templates."""

    CHECKPOINT_FORMAT = "{path}: not a checkpoint. Expected a file that spacy elmo pretrain wrote."
    CHECKPOINT_DAMAGED = (
        "{path}: can't be used ({reason}). Expected a checkpoint that was not changed since it was written."
    )
    CHECKPOINT_STEP = "{path}: a checkpoint of step {got}. Expected that of step {expected}: the file was renamed."
    CHECKPOINT_PLACE = (
        "a checkpoint has the stream {stream} at {place}, but this run's text has nothing there. The checkpoint is "
        "not of this run: delete it, and the one before it is used, or start a new run in another output folder."
    )
    CHECKPOINT_ARRAY = "{path}: the array {name} can't be stored ({reason}). Expected numbers."
    CHECKPOINT_FULL = (
        "{path}: can't be written ({reason}): it needs {needed:,} bytes, and {free:,} are free on the disk. Make "
        "room, or raise the quota or the limit. Then the same command, without --restart, goes on from the checkpoint "
        "before."
    )
    CHECKPOINT_BEFORE = "{problem} The checkpoint before it is used."
    CHECKPOINTS_ALL = (
        "{folder}: no checkpoint can be used. Delete them to start from the beginning, or put an undamaged one there. "
        "{problems}"
    )
    RUN_LOCKED = (
        "{folder}: another run writes there, {holder}. Wait until it ends, stop it, or give another output folder."
    )
