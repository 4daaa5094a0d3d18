"""Messages on pretraining."""


class TrainingMessages:
    """Message templates."""

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
    DIVERGED = (
        "the loss of step {step} is not finite: training has diverged. Begin anew with a lower training.learning_rate; "
        "{path} is of an earlier step."
    )
    STREAMS = (
        "training.streams is {got}. Expected a multiple of {expected}: each of the {size} processes has as many, and "
        "each pair of training.workers as many of these."
    )
    MANY_NEGATIVES = (
        "training.softmax.negatives is {got}, but the vocabulary has {n_words} words. Expected at most as many: set it "
        'lower, or training.softmax.kind to "full".'
    )
    ADAPTIVE_WIDTH = (
        "training.softmax.cutoffs has {n} numbers, too many for a projection_dim of {projection_dim}: each cluster has "
        "a quarter of the width before it. Expected {most} at most, or a projection_dim of {least:,} or more."
    )
    ADAPTIVE_NARROW = (
        "projection_dim is {projection_dim}, too small for an adaptive softmax: its first cluster has a quarter of "
        'that width. Expected 4 or more, or set training.softmax.kind to "sampled" or "full".'
    )
    ADAPTIVE_WORDS = (
        "training.softmax.cutoffs is {cutoffs}, but the vocabulary has {n_words} words. Expected one number or more, "
        "from 1 to {most}, each larger than the one before: lower or leave out the last, or give a larger vocabulary."
    )
    TUNE_OPTIONS = "[bilm] has other sizes than {path}. Expected the same: paths.init is what the run goes on from."
    TUNE_NO_SOFTMAX = (
        "{folder}: there is no softmax.hdf5, as in all official files. Set training.frozen_tokens, for example to "
        "2000000: so many tokens at the beginning train a new softmax alone, before the biLM is tuned with it."
    )
    TUNE_ADAPTIVE = (
        "paths.init has another softmax than training.softmax asks for. An adaptive softmax goes on only as it is: "
        "with the same vocabulary and cutoffs, and not from or to one of another kind. To fit a new one, give a folder "
        "with options.json and weights.hdf5 alone, and set training.frozen_tokens."
    )
    PROCESS_DIED = (
        "another process of this run has died, or can't be reached ({reason}). Start the run again: it goes on from "
        "the last checkpoint, with any number of processes that divides training.streams."
    )
    PROCESS_FAILED = "process {rank} of this run has ended with an error, which it tells."
    PROCESS_SETTINGS = (
        "process {rank} has other settings than process 0. Expected the same configuration and options in all "
        "processes, on all machines."
    )
    PROCESS_CHECKPOINT = (
        "{path}: process {rank} finds {got}, but process 0 another checkpoint. Expected a folder that all machines "
        "share, or a copy of process 0's on each."
    )
    CHECKPOINT_PARTS = (
        "{path}: not a checkpoint of this run ({problems}). Delete it to begin anew, or put the right one there."
    )
    RUN_UNREADABLE = (
        "{path}: can't be read ({reason}). It tells what this run was begun with: put the whole file there, or give "
        "another output folder to begin anew."
    )
    RUN_DIFFERS = (
        "{path}: this run was begun with {key} = {old}, but now it is {new}. Set it back to go on, or give another "
        "output folder to begin anew."
    )
    CHECKPOINT = "{path}: can't be read ({reason}). Delete it to begin anew, or put a whole one there."
    RUN_MISSING = "{path}: no corpus in it. Expected the folder that `spacy elmo pretrain` made."
