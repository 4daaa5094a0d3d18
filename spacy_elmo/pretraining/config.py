"""The settings of a run: what each may be, and the config file that holds them."""

import configparser
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from thinc.api import Config

from ..errors import ElmoError, SettingsError, shown
from ..formats.atomic import replacing, writing
from ..formats.options import KEYS, BiLMOptions, read_options
from ..formats.paths import expanded
from ..formats.text import name_of
from ..modules.loading import find_bilm
from .language_model import OPTIONS, refuse_new_run

# What a setting may be

_MOST = 2**63 - 1  # what arrays of int64 hold


class Rule(NamedTuple):
    """fits: whether a value can be used; expected: the same in words; final: its last form."""

    fits: Callable[[Any], bool]
    expected: str
    final: Callable[[Any], Any] = lambda value: value


def whole(least: int, most: int = _MOST) -> Rule:
    bound = f"{least:,} or more" if most == _MOST else f"from {least:,} to {most:,}"
    return Rule(lambda value: _is_whole(value) and least <= value <= most, f"a whole number, {bound}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def real(expected: str, holds: Callable[[float], bool]) -> Rule:
    def fits(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and abs(value) <= sys.float_info.max and holds(value)

    return Rule(fits, f"a number, {expected}", float)


NOT_NEGATIVE = real("0 or more", lambda value: value >= 0)
POSITIVE = real("more than 0", lambda value: value > 0)
AT_MOST_A_MILLION = real("more than 0 and at most 1000000", lambda value: 0 < value <= 1e6)
SHARE = real("from 0 to 1", lambda value: 0 <= value <= 1)
HALF = real("from 0 to 0.5", lambda value: 0 <= value <= 0.5)
INSIDE = real("more than 0 and less than 1", lambda value: 0 < value < 1)
SUM = real("from 0 to 1e30", lambda value: 0 <= value <= 1e30)
DECAY = real("0 or more and less than 1", lambda value: 0 <= value < 1)
# not empty, and without NUL, which no path can have
TEXT = Rule(lambda value: isinstance(value, str) and value != "" and "\0" not in value, "text in quotes")


def one_of(*choices: str) -> Rule:
    told = ", ".join(f'"{choice}"' for choice in choices)
    return Rule(lambda value: isinstance(value, str) and value in choices, f"one of {told}")


def _rises(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value or not all(map(_is_whole, value)):
        return False
    return bool(value[0] >= 4 and value[-1] <= _MOST and all(a < b for a, b in pairwise(value)))


RISING = Rule(_rises, "a list of whole numbers, 4 or more, each larger than the one before", tuple)


def optional(rule: Rule) -> Rule:
    return Rule(lambda value: value is None or rule.fits(value), f"{rule.expected}, or null")


PATH = optional(TEXT)


def setting(default: Any, rule: Rule, text: str) -> Any:
    """A field of a section. default: MISSING if a config must have it. text: the help."""
    return field(default=default, metadata={"rule": rule, "help": text})


def refuse(key: str, value: object, expected: str) -> None:
    raise SettingsError(f"{key} is {shown(value)}. Expected {expected}.")


class Section:
    """A dataclass of settings, which are checked when it is made. name: of the section in the file."""

    SECTION: ClassVar[str]

    def __init_subclass__(cls, name: str) -> None:
        cls.SECTION = name

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]  # those below are dataclasses
            rule, value = entry.metadata.get("rule"), getattr(self, entry.name)
            if rule is None:  # a section
                continue
            if not rule.fits(value):
                refuse(f"{self.SECTION}.{entry.name}", value, rule.expected)
            object.__setattr__(self, entry.name, rule.final(value))  # sections are frozen


# The sections


@dataclass(frozen=True)
class PathSettings(Section, name="paths"):
    """The files of a run; relative paths begin at the folder that the command runs in."""

    train: str = setting(
        MISSING,
        TEXT,
        "text, one sentence a line (plain, .gz, .xz, .zst), .jsonl or .spacy: a file, a folder or a pattern",
    )
    heldout: str | None = setting(None, PATH, "text for the held-out perplexity; null: cut off from paths.train")
    vocabulary: str | None = setting(
        None, PATH, "one word a line, the most frequent first (elmo vocab writes one); null: built from paths.train"
    )
    init: str | None = setting(
        None,
        PATH,
        "biLM to go on from, with softmax and words if it has them: folder, run or name; null: random weights",
    )


@dataclass(frozen=True)
class CorpusSettings(Section, name="corpus"):
    """How the text is split, cut and shuffled."""

    language: str | None = setting(
        None, PATH, 'language whose spaCy tokenizer splits the text, like "en"; null: blanks do'
    )
    heldout_share: float = setting(0.01, INSIDE, "share of the sentences, the last, held out if paths.heldout is null")
    shuffle_block: int = setting(
        8192, whole(1), "sentences of a block, inside which they are shuffled, and the blocks too"
    )


@dataclass(frozen=True)
class VocabularySettings(Section, name="vocabulary"):
    """Which words the softmax predicts."""

    size: int = setting(50_000, whole(4), "words that the softmax predicts, with <S>, </S> and <UNK>")
    min_count: int | None = setting(
        1, optional(whole(1)), "how often a word must occur; null: 2 if all would fit, else 1"
    )


@dataclass(frozen=True)
class SoftmaxSettings(Section, name="training.softmax"):
    """How the loss is computed: sampled after Jean et al. 2015, adaptive after Grave et al. 2017.

    Each cluster of the adaptive softmax has a quarter of the width of the one before it.
    """

    kind: str = setting(
        "sampled", one_of("sampled", "full", "adaptive"), '"sampled" (log-uniform, corrected), "full" or "adaptive"'
    )
    negatives: int = setting(4_096, whole(1), "sampled words, shared by a batch and both directions")
    cutoffs: tuple[int, ...] = setting((2_000, 10_000), RISING, "first word of each cluster of the adaptive softmax")


@dataclass(frozen=True)
class OptimizerSettings(Section, name="training.optimizer"):
    """The optimizer: Muon (Jordan et al. 2024), AdamW (Loshchilov and Hutter 2019), or Adagrad (Duchi et al. 2011).

    Peters et al. 2018 used Adagrad. They started its sums at 1, and multiplied the loss by the steps before clipping.
    """

    name: str = setting(
        "muon",
        one_of("muon", "adamw", "adagrad"),
        '"muon", "adamw" or "adagrad"; learning_rate, clip_norm and loss_scale belong to it: change all or none',
    )
    learning_rate: float = setting(8e-3, POSITIVE, "highest rate of the schedule")
    beta1: float = setting(0.9, DECAY, "decay of the mean of the gradients; AdamW's")
    beta2: float = setting(0.99, DECAY, "decay of the mean of the squared gradients; AdamW's")
    epsilon: float = setting(1e-8, POSITIVE, "added to the denominator of an update; AdamW's")
    momentum: float = setting(0.95, DECAY, "decay of the mean of the gradients; Muon's")
    weight_decay: float = setting(0.0, NOT_NEGATIVE, "of the biLM's weights, not of its biases; AdamW's and Muon's")
    initial_accumulator: float = setting(1.0, SUM, "first value of the sums of squared gradients; Adagrad's")
    clip_norm: float = setting(1.0, POSITIVE, "bound of the gradient's global norm")
    loss_scale: float = setting(1.0, AT_MOST_A_MILLION, "factor of the mean loss, before the gradient is clipped")


@dataclass(frozen=True)
class ScheduleSettings(Section, name="training.schedule"):
    """The learning rate over the run: a linear rise, a constant part, and a fall."""

    kind: str = setting(
        "linear",
        one_of("constant", "linear", "cosine"),
        'how the rate falls: "constant" (not at all), "linear" or "cosine"',
    )
    warmup_steps: int = setting(300, whole(0), "updates in which the rate rises from 0")
    decay_share: float = setting(0.5, SHARE, "last share of the run, in which it falls")
    final_share: float = setting(0.0, SHARE, "share of the rate that is left at the end of the run")


@dataclass(frozen=True)
class TrainingSettings(Section, name="training"):
    """The batches, the length of the run, and what computes."""

    streams: int = setting(256, whole(1, 10**6), "rows of a batch, of all processes together")
    steps: int = setting(20, whole(1, 10**6), "positions of a row: the steps of truncated back-propagation")
    zero_state_share: float = setting(0.75, SHARE, "share of the streams whose sentences start from the zero state")
    dropout: float = setting(0.0, DECAY, "on the inputs of each LSTM layer and the outputs of the top layer")
    epochs: float = setting(5.0, AT_MOST_A_MILLION, "length of the run")
    total_tokens: int | None = setting(None, optional(whole(1)), "length of the run in tokens; null: epochs counts")
    average_share: float = setting(
        0.0,
        HALF,
        "horizon of an average of the weights, saved in their place, as a share of the run, like 0.01; 0: none",
    )
    accumulate: int = setting(1, whole(1, 10**6), "batches of an update")
    frozen_tokens: int = setting(0, whole(0), "first tokens of a run from paths.init, which train the softmax alone")
    weight_bits: int | None = setting(
        None, optional(whole(2, 16)), "bits of the biLM's matrices while a run from paths.init trains; null: all"
    )
    workers: int = setting(2, whole(1, 1024), "threads of a process, 1 or an even number")
    readers: int = setting(0, whole(0, 256), "processes that read the text ahead, for a GPU; 0: none")
    precision: str = setting(
        "auto",
        one_of("auto", "float32", "bfloat16"),
        'of the matrix multiplications: "float32", "bfloat16", or "auto": bfloat16 if the machine has it',
    )
    device: str = setting("cpu", one_of("cpu", "cuda"), '"cpu" or "cuda"')
    seed: int = setting(0, whole(0), "of the weights, the order of the sentences, and all else that is random")
    patience: int = setting(0, whole(0), "evaluations without a better perplexity until the run stops; 0: never")
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)

    @property
    def tokens_per_update(self) -> int:
        """The tokens of one direction that all processes together read for an update, `</S>` counted."""
        return self.streams * self.steps * self.accumulate


@dataclass(frozen=True)
class EvaluationSettings(Section, name="evaluation"):
    """How often a run is evaluated and saved."""

    every: int = setting(2_000, whole(1), "updates from one evaluation to the next")
    checkpoint_every: int = setting(500, whole(1), "updates from one checkpoint to the next")
    sentences: int = setting(
        1_000, whole(1), "held-out sentences scored during the run, from the whole held-out text; at its end all are"
    )


@dataclass(frozen=True)
class PretrainConfig:
    """All sections, and the sizes of the network. Raises SettingsError for values that do not go together."""

    paths: PathSettings = field(metadata={"help": "relative paths begin at the folder that the command runs in"})
    bilm: BiLMOptions = field(metadata={"help": "sizes of the network, as in options.json; left out: of paths.init"})
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        paths, training = self.paths, self.training
        softmax, words = training.softmax, self.vocabulary.size
        if training.workers > 1 and training.workers % 2:
            refuse("training.workers", training.workers, "1 or an even number: half of them run each direction")
        built = paths.vocabulary is None and paths.init is None  # others are checked when they are known
        if built and softmax.kind == "sampled" and softmax.negatives > words:
            refuse("training.softmax.negatives", softmax.negatives, f"at most vocabulary.size, {words}")
        if built and softmax.kind == "adaptive" and softmax.cutoffs[-1] >= words:
            refuse("training.softmax.cutoffs", softmax.cutoffs, f"numbers below vocabulary.size, {words}")
        if training.frozen_tokens and paths.init is None:
            expected = "0 where paths.init is not set: a biLM of random weights is not to be frozen"
            refuse("training.frozen_tokens", training.frozen_tokens, expected)
        if training.weight_bits is not None and paths.init is None:
            expected = "null where paths.init is not set: the steps of few bits are those of trained weights"
            refuse("training.weight_bits", training.weight_bits, expected)


# The config file: spaCy's format, with defaults, overrides and variables

Tree = dict[str, Any]


def read_config(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> PretrainConfig:
    """Read a configuration; settings that it leaves out have their defaults. Raises ElmoError.

    overrides: by full names, as in {"training.epochs": 2}; variables like ${paths.train} see them.
    """
    given = dict(overrides or {})
    _refuse_unknown(given, ", given on the command line")
    tree: Tree = {}
    try:
        written = dict(flat(Config().from_str(expanded(path).read_text(encoding="utf8"), interpolate=False)))
        _refuse_unknown(written)
        values = {key: entry.default for key, entry, is_section in _fields() if not is_section}
        values |= {key: _unescaped(value) for key, value in written.items() if value != {}}  # an empty section
        for key, value in (values | given).items():
            *sections, name = key.split(".")
            if sections == ["paths"] and isinstance(value, str):
                value = os.path.expanduser(value)
            place = tree
            for section in sections:
                place = place.setdefault(section, {})
            if value is not MISSING:
                place[name] = list(value) if isinstance(value, tuple) else value
        config: PretrainConfig = _build(PretrainConfig, Config(tree, is_interpolated=False).interpolate())
    except ElmoError as error:
        raise type(error)(f"{path}: {error}") from error
    except _MALFORMED as error:
        reason = " ".join(str(error).split()) or type(error).__name__  # thinc's have several lines
        raise SettingsError(
            f"{path}: not a configuration ({reason}). Expected sections and settings as spaCy's configs have."
        ) from error
    return config


# what thinc and configparser raise for malformed files
_MALFORMED = (OSError, ValueError, configparser.Error, LookupError, TypeError, AttributeError, RecursionError)


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a tree, and empty sections, by their full names."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _unescaped(value: object) -> object:
    # a file has two dollars for one, because a dollar begins a variable
    return value.replace("$$", "$") if isinstance(value, str) and "${" not in value else value


def _fields(section: type = PretrainConfig, prefix: str = "") -> Iterator[tuple[str, Field[Any], bool]]:
    """Yield all fields by their full names, and whether they are sections."""
    for entry in fields(section):
        is_section = is_dataclass(entry.type)
        yield prefix + entry.name, entry, is_section
        if is_section and entry.type is not BiLMOptions:
            yield from _fields(entry.type, f"{prefix}{entry.name}.")  # type: ignore[arg-type]


def _refuse_unknown(keys: Iterable[str], where: str = "") -> None:
    known = {key for key, _, is_section in _fields() if not is_section}
    known |= {f"bilm.{key}" for key in (*KEYS.values(), "char_cnn.n_characters")}
    sections = {key.rsplit(".", depth)[0] for key in known for depth in range(1, key.count(".") + 1)}
    got = []
    for key in keys:
        if key not in known | sections:
            nearest = get_close_matches(key, known | sections) or get_close_matches(key, known, cutoff=0.4)
            got.append(f"{key} (nearest: {', '.join(nearest)})" if nearest else key)
    if got:
        raise SettingsError(
            f"no such settings: {'; '.join(got)}{where}. Expected the names that spacy elmo init-pretrain-config "
            "writes."
        )


def _build(section: type, tree: Tree, prefix: str = "") -> Any:
    values: Tree = {}
    for entry in fields(section):
        key, value = prefix + entry.name, tree.get(entry.name)
        if entry.type is BiLMOptions:
            value = _bilm(tree)
        elif is_dataclass(entry.type):
            if not isinstance(value, dict):
                refuse(key, value, f"the section [{key}]")
            value = _build(entry.type, value, key + ".")  # type: ignore[arg-type]
        elif value is None and entry.default is MISSING:
            raise SettingsError(
                f"{key} is missing. Expected a value for it: set it in the file, or with --{key} VALUE."
            )
        values[entry.name] = value
    return section(**values)


def _bilm(tree: Tree) -> BiLMOptions:
    if "bilm" in tree:
        return BiLMOptions.from_dict(tree["bilm"], "[bilm]")
    init = tree["paths"].get("init") if isinstance(tree["paths"], dict) else None
    if not isinstance(init, str):
        raise SettingsError(
            "the section [bilm] is missing. Expected the sizes of the biLM, with the same keys as options.json, "
            "or paths.init: the folder of a biLM to start from, whose sizes are then used."
        )
    folder = find_bilm(init)
    refuse_new_run(folder)
    return read_options(folder / OPTIONS)


def to_config(config: PretrainConfig) -> Config:
    """All settings, section by section; [bilm] is laid out as options.json."""
    tree = asdict(config) | {"bilm": config.bilm.to_dict()}
    softmax = tree["training"]["softmax"]
    softmax["cutoffs"] = list(softmax["cutoffs"])
    return Config(tree)


def to_text(config: Config) -> str:
    """The text of a configuration file."""
    return "\n\n".join(Config({name: section}).to_str() for name, section in config.items()) + "\n"


def text_without_folders(config: PretrainConfig) -> str:
    """The text of a configuration file in which paths have only their last part."""
    tree = to_config(config)
    tree["paths"] = {name: path and name_of(path) for name, path in tree["paths"].items()}
    return to_text(tree)


def write_config(config: PretrainConfig, path: str | os.PathLike[str]) -> None:
    with replacing(path, SettingsError) as temporary, writing(path, SettingsError):
        temporary.write_text(to_text(to_config(config)), encoding="utf8")


# The help: comments of the file, `pretrain --help` and the reference


class Setting(NamedTuple):
    """default: as it is written in a config; None if it has none."""

    key: str
    default: str | None
    help: str


def settings() -> Iterator[Setting]:
    """All settings and sections that have a help text, in the order of the file."""
    for key, entry, _ in _fields():
        if "help" in entry.metadata:
            default = None if entry.default is MISSING else json.dumps(entry.default)
            yield Setting(key, default, entry.metadata["help"])


def commented(text: str) -> str:
    """A config with a line of explanation above each setting."""
    helps = {setting.key: setting.help for setting in settings()}
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        header, setting = re.fullmatch(r"\[(.+)\]", line), re.match(r"(\w+) = ", line)
        if header:
            section = header[1]
        key = section if header else f"{section}.{setting[1]}" if setting else ""
        if key in helps:
            lines.append(f"# {helps[key]}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def command_help() -> str:
    """A paragraph for each setting, as `pretrain --help` shows them."""
    lines = [
        f"--{key}: {text} ({f'default: {default}' if default else 'required'})"
        for key, default, text in settings()
        if "." in key
    ]
    return "\n\n".join(["Settings, which can be given as options:", *lines])
