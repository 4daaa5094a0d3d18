"""Settings of a run that can't be used together."""

from .checks import refuse
from .sections import PathSettings, TrainingSettings, VocabularySettings


def check_together(paths: PathSettings, vocabulary: VocabularySettings, training: TrainingSettings) -> None:
    """Raise SettingsError for values that are right by themselves, but not beside each other."""
    softmax, words = training.softmax, vocabulary.size
    if training.workers > 1 and training.workers % 2:
        refuse("training.workers", training.workers, "1 or an even number: half of them run each direction")
    groups = 1 if training.device == "cuda" else max(1, training.workers // 2)
    if training.streams % groups:
        expected = f"a multiple of {groups}, half of training.workers: a pair of workers shares no stream with another"
        refuse("training.streams", training.streams, expected)
    if training.readers and training.streams % training.readers:
        refuse("training.readers", training.readers, f"0 or a divisor of training.streams, {training.streams}")
    built = paths.vocabulary is None and paths.init is None  # others are checked when they are known
    if built and softmax.kind == "sampled" and softmax.negatives > words:
        refuse("training.softmax.negatives", softmax.negatives, f"at most vocabulary.size, {words}")
    if built and softmax.kind == "adaptive" and softmax.cutoffs[-1] >= words:
        refuse("training.softmax.cutoffs", softmax.cutoffs, f"numbers below vocabulary.size, {words}")
    if training.frozen_tokens and paths.init is None:
        expected = "0 where paths.init is not set: a biLM of random weights is not to be frozen"
        refuse("training.frozen_tokens", training.frozen_tokens, expected)
