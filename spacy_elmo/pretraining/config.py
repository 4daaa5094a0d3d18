"""All settings of a run together."""

import math
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from ..errors import SettingsError, shown
from ..formats.options import BiLMOptions

_RULE, _HELP = "rule", "help"
_MOST = 2**63 - 1  # what arrays of int64 hold


class Rule(NamedTuple):
    """fits: whether a value is one that can be used; expected: the same in words; final: the value's last form."""

    fits: Callable[[Any], bool]
    expected: str
    final: Callable[[Any], Any] = lambda value: value


Metadata = dict[str, Any]


def whole(least: int, most: int | None = None, optional: bool = False) -> Metadata:
    """A whole number from least to most; None too if it is optional."""
    bound = f"{least:,} or more" if most is None else f"from {least:,} to {most:,}"
    highest = _MOST if most is None else most

    def fits(value: object) -> bool:
        return _is_whole(value) and least <= value <= highest  # type: ignore[operator]

    return _metadata(fits, f"a whole number, {bound}", optional)


def real(
    least: float | None = None, most: float | None = None, *, above: float | None = None, below: float | None = None
) -> Metadata:
    """A finite number between bounds: least and most are allowed themselves, above and below are not."""
    bounds = [(least, "{} or more"), (above, "more than {}"), (most, "{} or less"), (below, "less than {}")]
    said = " and ".join(text.format(bound) for bound, text in bounds if bound is not None)

    def fits(value: object) -> bool:
        number = _number(value)
        if number is None:
            return False
        return (
            (least is None or number >= least)
            and (above is None or number > above)
            and (most is None or number <= most)
            and (below is None or number < below)
        )

    return {_RULE: Rule(fits, "a number, " + said if said else "a number", float)}


def text(optional: bool = False) -> Metadata:
    """A string that is not empty, without NUL, which no path can have."""
    return _metadata(
        lambda value: isinstance(value, str) and value != "" and "\0" not in value, "text in quotes", optional
    )


def one_of(*choices: str) -> Metadata:
    """One of these strings."""
    expected = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    return _metadata(lambda value: isinstance(value, str) and value in choices, expected, False)


def rising(least: int) -> Metadata:
    """A list of one whole number or more, the first at least `least`, each larger than the one before it."""

    def fits(value: object) -> bool:
        if not isinstance(value, list | tuple) or not value or not all(map(_is_whole, value)):
            return False
        return bool(value[0] >= least and value[-1] <= _MOST and all(a < b for a, b in pairwise(value)))

    return {_RULE: Rule(fits, f"a list of whole numbers, {least:,} or more, each larger than the one before", tuple)}


def help_text(text: str) -> Metadata:
    """What a setting does, in words: for a field's metadata, beside its rule."""
    return {_HELP: text}


def help_of(field: Field[Any]) -> str | None:
    """The help text of a field; None if it has none."""
    text: str | None = field.metadata.get(_HELP)
    return text


class Section:
    """A dataclass of settings, checked when it is made. SECTION: its name in the file."""

    SECTION: ClassVar[str]

    def __post_init__(self) -> None:
        check_section(self)


def check_section(section: Any) -> None:
    """Check all fields of a section that say what they may be, and bring them to their last form.

    Raises SettingsError.
    """
    for entry in fields(section):
        rule = entry.metadata.get(_RULE)
        if rule is None:
            continue
        value = getattr(section, entry.name)
        if not rule.fits(value):
            refuse(f"{section.SECTION}.{entry.name}", value, rule.expected)
        object.__setattr__(section, entry.name, rule.final(value))  # sections are frozen


def refuse(key: str, value: object, expected: str) -> None:
    """Raise SettingsError."""
    raise SettingsError(f"{key} is {shown(value)}. Expected {expected}.")


def _metadata(fits: Callable[[Any], bool], expected: str, optional: bool) -> Metadata:
    if optional:
        return {_RULE: Rule(lambda value: value is None or fits(value), f"{expected}, or null")}
    return {_RULE: Rule(fits, expected)}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> float | None:
    """The value as a float; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        return None
    return number if math.isfinite(number) else None


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


@dataclass(frozen=True)
class PretrainConfig:
    """All sections, and the sizes of the network. Raises SettingsError for values that do not go together."""

    paths: PathSettings = field(
        metadata=help_text("relative paths begin at the folder that the command runs in"),
    )
    bilm: BiLMOptions = field(
        metadata=help_text("sizes of the network, laid out as options.json; left out: those of paths.init")
    )
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        check_together(self.paths, self.vocabulary, self.training)
