"""The sections of a run's settings. All counts of tokens are of one direction, `</S>` counted.
Comments of configs, `pretrain --help` and the table in docs/reference.md are made from these fields.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from .checks import Section, help_text, one_of, real, rising, text, whole


@dataclass(frozen=True)
class PathSettings(Section):
    """The files of a run; relative paths begin at the folder that the command runs in."""

    SECTION: ClassVar[str] = "paths"

    train: str = field(
        metadata=text()
        | help_text(
            "text, one sentence a line (plain, .gz, .xz, .zst), .jsonl or .spacy: a file, a folder or a pattern"
        )
    )
    heldout: str | None = field(
        default=None,
        metadata=text(optional=True)
        | help_text("text for the held-out perplexity, as paths.train; null: cut off from paths.train"),
    )
    vocabulary: str | None = field(
        default=None,
        metadata=text(optional=True)
        | help_text(
            "one word a line, the most frequent first (spacy elmo vocab writes one); null: built from paths.train"
        ),
    )
    init: str | None = field(
        default=None,
        metadata=text(optional=True)
        | help_text(
            "biLM to go on from, with softmax and vocabulary if it has them: folder, run or name; null: random weights"
        ),
    )


@dataclass(frozen=True)
class CorpusSettings(Section):
    """How the text is split, cut and shuffled."""

    SECTION: ClassVar[str] = "corpus"

    language: str | None = field(
        default=None,
        metadata=text(optional=True)
        | help_text('language whose spaCy tokenizer splits the text, like "en"; null: words are separated by blanks'),
    )
    heldout_share: float = field(
        default=0.01,
        metadata=real(above=0, below=1)
        | help_text("share of the sentences, the last ones, that is held out if paths.heldout is null"),
    )
    shuffle_block: int = field(
        default=8192,
        metadata=whole(1)
        | help_text("sentences are shuffled inside blocks of this many, and the blocks among themselves"),
    )


@dataclass(frozen=True)
class VocabularySettings(Section):
    """Which words the softmax predicts."""

    SECTION: ClassVar[str] = "vocabulary"

    size: int = field(
        default=50_000, metadata=whole(4) | help_text("words that the softmax predicts, with <S>, </S> and <UNK>")
    )
    min_count: int | None = field(
        default=1,
        metadata=whole(1, optional=True) | help_text("how often a word must occur; null: 2 if all would fit, else 1"),
    )


@dataclass(frozen=True)
class SoftmaxSettings(Section):
    """How the loss is computed: sampled after Jean et al. 2015, adaptive after Grave et al. 2017.

    Each cluster of the adaptive softmax has a quarter of the width of the one before it.
    """

    SECTION: ClassVar[str] = "training.softmax"

    kind: str = field(
        default="sampled",
        metadata=one_of("sampled", "full", "adaptive")
        | help_text('"sampled" (log-uniform negatives, corrected), "full" or "adaptive"'),
    )
    negatives: int = field(
        default=4_096, metadata=whole(1) | help_text("sampled words, shared by a batch and both directions")
    )
    cutoffs: tuple[int, ...] = field(
        default=(2_000, 10_000),
        metadata=rising(4) | help_text("first word of each cluster of the adaptive softmax"),
    )


@dataclass(frozen=True)
class OptimizerSettings(Section):
    """The optimizer: Muon (Jordan et al. 2024), AdamW (Loshchilov and Hutter 2019), or Adagrad (Duchi et al. 2011).

    Peters et al. 2018 used Adagrad. They started its sums at 1, and multiplied the loss by the steps before clipping.
    """

    SECTION: ClassVar[str] = "training.optimizer"

    name: str = field(
        default="muon",
        metadata=one_of("muon", "adamw", "adagrad")
        | help_text(
            '"muon", "adamw", or "adagrad", whose learning_rate, clip_norm and loss_scale belong together: '
            "change all or none"
        ),
    )
    learning_rate: float = field(default=8e-3, metadata=real(above=0) | help_text("highest rate of the schedule"))
    beta1: float = field(
        default=0.9, metadata=real(0, below=1) | help_text("decay of the mean of the gradients; AdamW's")
    )
    beta2: float = field(
        default=0.99, metadata=real(0, below=1) | help_text("decay of the mean of the squared gradients; AdamW's")
    )
    epsilon: float = field(
        default=1e-8, metadata=real(above=0) | help_text("added to the denominator of an update; AdamW's")
    )
    momentum: float = field(
        default=0.95, metadata=real(0, below=1) | help_text("decay of the mean of the gradients; Muon's")
    )
    weight_decay: float = field(
        default=0.0,
        metadata=real(0) | help_text("of the biLM's weights, not of its biases or the softmax; AdamW's and Muon's"),
    )
    initial_accumulator: float = field(
        default=1.0, metadata=real(0, 1e30) | help_text("first value of the sums of squared gradients; Adagrad's")
    )
    clip_norm: float = field(default=1.0, metadata=real(above=0) | help_text("bound of the gradient's global norm"))
    loss_scale: float = field(
        default=1.0,
        metadata=real(above=0, most=1e6)
        | help_text("what the mean loss is multiplied by before the gradient is clipped"),
    )


@dataclass(frozen=True)
class ScheduleSettings(Section):
    """The learning rate over the run: a linear rise, a constant part, and a fall."""

    SECTION: ClassVar[str] = "training.schedule"

    kind: str = field(
        default="linear",
        metadata=one_of("constant", "linear", "cosine")
        | help_text('how the rate falls: "constant" (not at all), "linear" or "cosine"'),
    )
    warmup_steps: int = field(default=300, metadata=whole(0) | help_text("updates in which the rate rises from 0"))
    decay_share: float = field(default=0.5, metadata=real(0, 1) | help_text("last share of the run, in which it falls"))
    final_share: float = field(
        default=0.0, metadata=real(0, 1) | help_text("share of the rate that is left at the end of the run")
    )


@dataclass(frozen=True)
class TrainingSettings(Section):
    """The batches, the length of the run, and what computes."""

    SECTION: ClassVar[str] = "training"

    streams: int = field(
        default=256, metadata=whole(1, 10**6) | help_text("rows of a batch, of all processes together")
    )
    steps: int = field(
        default=20,
        metadata=whole(1, 10**6)
        | help_text("positions of a batch in each row: the steps of truncated back-propagation"),
    )
    zero_state_share: float = field(
        default=0.75,
        metadata=real(0, 1)
        | help_text("share of the streams whose sentences each start from the zero state, not the carried one"),
    )
    dropout: float = field(
        default=0.0,
        metadata=real(0, below=1) | help_text("on the inputs of each LSTM layer and the outputs of the top layer"),
    )
    epochs: float = field(default=5.0, metadata=real(above=0, most=1e6) | help_text("length of the run"))
    total_tokens: int | None = field(
        default=None, metadata=whole(1, optional=True) | help_text("length of the run in tokens; null: epochs counts")
    )
    average_share: float = field(
        default=0.0,
        metadata=real(0, 0.5)
        | help_text(
            "horizon of an average of the weights that is saved in their place, as a share of the run, like "
            "0.01; 0: none"
        ),
    )
    accumulate: int = field(default=1, metadata=whole(1, 10**6) | help_text("batches of an update"))
    frozen_tokens: int = field(
        default=0,
        metadata=whole(0) | help_text("tokens at the beginning of a run from paths.init that train the softmax alone"),
    )
    workers: int = field(default=2, metadata=whole(1, 1024) | help_text("threads of a process, 1 or an even number"))
    readers: int = field(
        default=0, metadata=whole(0, 256) | help_text("processes that read the text ahead, for a GPU; 0: none")
    )
    precision: str = field(
        default="auto",
        metadata=one_of("auto", "float32", "bfloat16")
        | help_text('of the matrix multiplications: "float32", "bfloat16", or "auto": bfloat16 if the machine has it'),
    )
    device: str = field(default="cpu", metadata=one_of("cpu", "cuda") | help_text('"cpu" or "cuda"'))
    seed: int = field(
        default=0,
        metadata=whole(0, 2**63 - 1)
        | help_text("of the weights, the order of the sentences, and everything else that is random"),
    )
    patience: int = field(
        default=0,
        metadata=whole(0)
        | help_text("evaluations without a better held-out perplexity after which the run stops; 0: never"),
    )
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)

    @property
    def tokens_per_update(self) -> int:
        """The tokens of one direction that all processes together read for an update, `</S>` counted."""
        return self.streams * self.steps * self.accumulate


@dataclass(frozen=True)
class EvaluationSettings(Section):
    """How often a run is evaluated and saved."""

    SECTION: ClassVar[str] = "evaluation"

    every: int = field(default=2_000, metadata=whole(1) | help_text("updates from one evaluation to the next"))
    checkpoint_every: int = field(default=500, metadata=whole(1) | help_text("updates from one checkpoint to the next"))
    sentences: int = field(
        default=1_000,
        metadata=whole(1)
        | help_text("held-out sentences scored during the run, spread over the held-out text; at its end all are"),
    )
