"""Settings of a pretraining run, section by section as they stand in its configuration file.

The defaults are those of configs/pretrain.cfg. All counts of tokens are
of one direction, `</S>` counted: one prediction a direction stands behind each.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from ...formats.options import BiLMOptions
from .checks import Section, one_of, real, rising, text, whole
from .consistency import check_together


@dataclass(frozen=True)
class Paths(Section):
    """train: text (see reading.py), a file, a folder or a glob. heldout: the same; None: cut off from train.

    vocabulary: one word a line, sorted by falling frequency; None: built from train. init: folder of a biLM to go on
    from, with its softmax and vocabulary where it has them, or en_mini, the embedded one; None: start from random
    weights.
    """

    SECTION: ClassVar[str] = "paths"

    train: str = field(metadata=text())
    heldout: str | None = field(default=None, metadata=text(optional=True))
    vocabulary: str | None = field(default=None, metadata=text(optional=True))
    init: str | None = field(default=None, metadata=text(optional=True))


@dataclass(frozen=True)
class CorpusSettings(Section):
    """language: whose spaCy tokenizer splits the text; None: words are separated by blanks.

    heldout_share: the last share of the sentences, held out where paths.heldout is None.
    shuffle_block: sentences are shuffled inside blocks of so many, and the blocks among themselves.
    """

    SECTION: ClassVar[str] = "corpus"

    language: str | None = field(default=None, metadata=text(optional=True))
    heldout_share: float = field(default=0.01, metadata=real(above=0, below=1))
    shuffle_block: int = field(default=8192, metadata=whole(1))


@dataclass(frozen=True)
class VocabularySettings(Section):
    """size: words of the softmax, `<S>`, `</S>` and `<UNK>` included; min_count: how often a word must occur."""

    SECTION: ClassVar[str] = "vocabulary"

    size: int = field(default=50_000, metadata=whole(4))
    min_count: int = field(default=1, metadata=whole(1))


@dataclass(frozen=True)
class SoftmaxSettings(Section):
    """kind: "sampled" (log-uniform negatives, corrected), "full", or "adaptive" (Grave et al. 2017).

    negatives: sampled words, shared by a batch and both directions.
    cutoffs: of the adaptive softmax: where its clusters begin; each cluster has a quarter of the width before it.
    """

    SECTION: ClassVar[str] = "training.softmax"

    kind: str = field(default="sampled", metadata=one_of("sampled", "full", "adaptive"))
    negatives: int = field(default=4_096, metadata=whole(1))
    cutoffs: tuple[int, ...] = field(default=(2_000, 10_000), metadata=rising(4))


@dataclass(frozen=True)
class OptimizerSettings(Section):
    """name: "adamw" (Adam with decoupled weight decay) or "adagrad", the originals'.

    initial_accumulator: Adagrad's, 1 in the originals; loss_scale: what the mean loss is multiplied by before clipping
    (the originals: by the steps; for Adagrad rate, accumulator, clip and scale make sense together alone).
    clip_norm: bound of the global gradient norm. weight_decay: of all matrices of the biLM, not of the softmax.
    """

    SECTION: ClassVar[str] = "training.optimizer"

    name: str = field(default="adamw", metadata=one_of("adamw", "adagrad"))
    learning_rate: float = field(default=4e-3, metadata=real(above=0))
    beta1: float = field(default=0.9, metadata=real(0, below=1))
    beta2: float = field(default=0.99, metadata=real(0, below=1))
    epsilon: float = field(default=1e-8, metadata=real(above=0))
    weight_decay: float = field(default=0.0, metadata=real(0))
    initial_accumulator: float = field(default=1.0, metadata=real(0, 1e30))
    clip_norm: float = field(default=1.0, metadata=real(above=0))
    loss_scale: float = field(default=1.0, metadata=real(above=0, most=1e6))


@dataclass(frozen=True)
class ScheduleSettings(Section):
    """kind: how the rate falls over the last decay_share of the run: "constant" (not at all), "linear" or "cosine", to
    final_share of the rate. warmup_steps: of a linear rise.
    """

    SECTION: ClassVar[str] = "training.schedule"

    kind: str = field(default="linear", metadata=one_of("constant", "linear", "cosine"))
    warmup_steps: int = field(default=300, metadata=whole(0))
    decay_share: float = field(default=0.5, metadata=real(0, 1))
    final_share: float = field(default=0.0, metadata=real(0, 1))


@dataclass(frozen=True)
class TrainingSettings(Section):
    """streams, steps: rows of a batch, of all processes together, and steps of truncated back-propagation.

    zero_state_share: share of the streams in which each sentence starts from the zero state.
    dropout: on each LSTM layer's input and the top layer's output (0.1 in the originals).
    epochs: length of the run; total_tokens: the same in tokens, and what counts where it is set.
    accumulate: batches of an update. frozen_tokens: of a run from paths.init, so many tokens at its beginning train the
    softmax alone, with the biLM frozen.
    workers: threads of a process, 1 or an even number. precision: of the matrix products: "float32", "bfloat16", or
    "auto": bfloat16 where the machine has instructions for it. device: "cpu", or "cuda".
    patience: evaluations without a better held-out perplexity after which the run stops; 0: never.
    """

    SECTION: ClassVar[str] = "training"

    streams: int = field(default=256, metadata=whole(1, 10**6))
    steps: int = field(default=20, metadata=whole(1, 10**6))
    zero_state_share: float = field(default=0.75, metadata=real(0, 1))
    dropout: float = field(default=0.0, metadata=real(0, below=1))
    epochs: float = field(default=5.0, metadata=real(above=0, most=1e6))
    total_tokens: int | None = field(default=None, metadata=whole(1, optional=True))
    accumulate: int = field(default=1, metadata=whole(1, 10**6))
    frozen_tokens: int = field(default=0, metadata=whole(0))
    workers: int = field(default=2, metadata=whole(1, 1024))
    precision: str = field(default="auto", metadata=one_of("auto", "float32", "bfloat16"))
    device: str = field(default="cpu", metadata=one_of("cpu", "cuda"))
    seed: int = field(default=0, metadata=whole(0, 2**63 - 1))
    patience: int = field(default=0, metadata=whole(0))
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)


@dataclass(frozen=True)
class EvaluationSettings(Section):
    """every, checkpoint_every: updates between evaluations, and between checkpoints.

    sentences: held-out sentences scored on the way, spread over the held-out part; at the end all are.
    """

    SECTION: ClassVar[str] = "evaluation"

    every: int = field(default=2_000, metadata=whole(1))
    checkpoint_every: int = field(default=500, metadata=whole(1))
    sentences: int = field(default=1_000, metadata=whole(1))


@dataclass(frozen=True)
class PretrainConfig:
    """All sections, and the network's sizes. Values that do not go together are refused (SettingsError)."""

    paths: Paths
    bilm: BiLMOptions
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        check_together(self)
