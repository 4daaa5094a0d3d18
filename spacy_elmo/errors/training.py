"""Messages on pretraining."""


class TrainingMessages:
    """Message templates."""

    FEW_SENTENCES = (
        "the training text has {got} sentences, but training.streams is {streams}. Expected at least one sentence for "
        "each stream: set training.streams lower, or give more text."
    )
    DIVERGED = (
        "{what} is not finite: training has diverged. Start a new run in another output folder, with a lower "
        "training.optimizer.learning_rate. If there are checkpoints in {path}, they are of earlier steps, but their "
        "weights may already be too large."
    )
    WORSE_THAN_CHANCE = (
        "the held-out perplexity after step {step} is {got:,.0f}, worse than the {words:,} of equal probabilities for "
        "all words of the vocabulary. Probably training.optimizer.learning_rate is too high, or the text too short "
        "for so many epochs: start a new run in another output folder with a lower one."
    )
    NO_GPU = (
        'training.device is "cuda", but torch finds {got} GPUs here. Expected at least {expected}: set it to "cpu", '
        "or install a build of torch for this machine's GPU."
    )
    STREAMS = (
        "training.streams is {got}. Expected a multiple of {expected}: the streams are divided equally among {size} "
        "processes, and in each process among the pairs of training.workers."
    )
    READERS = (
        "training.readers is {got}. Expected 0 or a number that divides the {streams} streams of a process: {divisors}."
    )
    READER_DIED = (
        "a process that reads the text has ended (exit code {code}). If it was killed for want of memory (-9), set "
        "training.readers, which is {readers}, lower. If the files of the run's corpus were changed (-7), start a new "
        "run. Otherwise the same command, without --restart, goes on from the last checkpoint."
    )
    MANY_NEGATIVES = (
        "training.softmax.negatives is {got}, but the vocabulary has {n_words} words. Expected at most that many: set "
        'it lower, or training.softmax.kind to "full".'
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
    TUNE_OPTIONS = (
        "[bilm] has other sizes than {path}. Expected the same: the run starts from paths.init. Leave [bilm] and its "
        "subsections out of the config, and the sizes of paths.init are used."
    )
    TUNE_NO_SOFTMAX = (
        "{folder}: there is no softmax.hdf5. That of the official biLM original is a file of its own: "
        "docs/pretraining.md tells where. For another biLM set training.frozen_tokens, for example to 2000000, or to "
        "half of a shorter run's tokens: the first tokens of the run, that many, train a new softmax alone, before the "
        "biLM is tuned with it."
    )
    TUNE_ADAPTIVE = (
        "paths.init has another softmax than training.softmax asks for. An adaptive softmax can only be tuned as it "
        "is: with the same vocabulary and cutoffs, and not from or to another kind. To fit a new one, give a folder "
        "with only options.json and weights.hdf5, and set training.frozen_tokens."
    )
    COVERAGE_LOW = (
        "the vocabulary has {coverage:.2%} of the training text's tokens. All others are predicted as <UNK>, so the "
        "perplexity says little: unless you want that, use a larger vocabulary, or one of this text "
        "(python -m spacy elmo vocab makes it)."
    )
    UNKNOWN_UNSEEN = (
        "the vocabulary has every word of the training text, so <UNK> is never learned, but {share:.1%} of the "
        "held-out words are <UNK>. Their losses rise during the run, and spoil the perplexity by which model-best is "
        "chosen. If the vocabulary is built from the text, set vocabulary.min_count to 2. If it is a file, leave rare "
        "words out of it."
    )
    FROZEN_LONG = (
        "training.frozen_tokens is {got:,}, but the run has {tokens:,} tokens: the biLM will not change, since the "
        "softmax alone is trained. If you want to tune the biLM, set it to half of the run's tokens or fewer."
    )
    CUT_SHARE = (
        "{share:.1%} of the training text's words have more than {bytes} bytes in UTF-8, but the biLM reads the first "
        "{bytes} of a word: words that differ only after them get the same vector. If the text has no blanks between "
        "words, set corpus.language, or separate the words first."
    )
    CUT_SETTING = (
        " If its words are that long, raise bilm.char_cnn.max_characters_per_token, which is {got}; AllenNLP can't "
        "read such a biLM."
    )
    FEW_UPDATES = (
        "the run has {got:,} updates, fewer than {expected:,}: it will learn little. Lower training.streams, which is "
        "{streams:,}, or raise {length}, which is {value:,}."
    )
    FEW_UPDATES_WARMUP = " Set training.schedule.warmup_steps, which is {warmup:,}, to a tenth of the updates at most."
    WARMUP_LONG = (
        "training.schedule.warmup_steps is {got:,}, and the run has {updates:,} updates, so the learning rate never "
        "reaches training.optimizer.learning_rate. Set warmup_steps to {expected:,}, a tenth of the "
        "updates, or less, or lower training.streams or raise {length} for more updates."
    )
    HELDOUT_SAME = (
        "{got} is in both the training text and the held-out text, which makes the held-out perplexity too low. Set "
        "paths.heldout to another text, or leave it out, and a part of the training text is held out."
    )
    PROCESS_VARIABLE = (
        "the environment variable {name} is {got}. Expected {expected}: torchrun sets it. Start the run with torchrun, "
        "or unset WORLD_SIZE to train in one process."
    )
    PROCESS_DIED = (
        "another process of this run has died, or can't be reached ({reason}). Start the run again, without --restart: "
        "it goes on from the last checkpoint, with any number of processes that divides training.streams."
    )
    PROCESS_FAILED = "process {rank} of this run has ended with an error, which it prints itself."
    PROCESS_SETTINGS = (
        "process {rank} has other settings than process 0. Expected the same configuration and options in all "
        "processes, on all machines."
    )
    PROCESS_ROUNDING = (
        'training.optimizer.name is "muon", and process {rank} rounds matrix multiplications in another way than '
        "process 0, so their weights would drift apart. Expected processors of one kind and the same version of torch, "
        'or a new run with "adamw".'
    )
    PROCESS_CHECKPOINT = (
        "{path}: process {rank} finds {got}, but process 0 finds another checkpoint. Expected a folder that all "
        "machines share, or a copy of process 0's folder on each machine."
    )
    CHECKPOINT_PARTS = (
        "{path}: not a checkpoint of this run ({problems}). Delete it to start from the beginning, or put the right "
        "one there."
    )
    RUN_FOREIGN = (
        "{folder}: holds {got}, but no run.json, so it is not the folder of a run, which would replace these files "
        "or be mixed up with them. Expected a new folder, or that of a run: give another one."
    )
    RESTART_OTHER = (
        "{folder}: holds files, but no run.json, so it is not the folder of a run. Expected one for --restart, which "
        "renames it: leave the option out, or give another folder."
    )
    RESTART_INPUT = (
        "{folder}: --restart would rename it, but the new run reads something that is in it: {reason} Nothing was "
        "changed. Give another folder for the new run, or paths outside of this one."
    )
    RUN_UNREADABLE = (
        "{path}: can't be read ({reason}). It says what this run was started with: put the complete file there. To "
        "start a new run, give another output folder, or add --restart, which keeps the earlier run under another name."
    )
    RUN_TEXT = (
        "{source}: the text has changed since this run was started: it had {old}; now {new}. Put the earlier text "
        "back to go on. To start a new run, give another output folder, or add --restart, which keeps the earlier "
        "run under another name."
    )
    RUN_CONTENTS = (
        "{path}: not with the contents (SHA-256 in {run}) that this run was started with. Put the right file there to "
        "go on. To start a new run, give another output folder, or add --restart, which keeps the earlier run "
        "under another name."
    )
    MEMORY = (
        "there is not enough memory ({reason}). Lower training.streams, which is {streams:,}, training.steps, which "
        "is {steps:,}, vocabulary.size or the sizes in [bilm]."
    )
    RUN_DIFFERS = (
        "{path}: this run was started with {key} = {old}, but now it is {new}. Set it back to go on. To start a "
        "new run, give another output folder, or add --restart, which keeps the earlier run under another name."
    )
