"""The settings of a run: what each may be, and the config file that holds them."""

import configparser
import json
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, NamedTuple, get_args

from thinc.api import Config

from ..errors import ElmoError, SettingsError, shown
from ..formats.atomic import replacing, writing
from ..formats.options import KEYS, BiLMOptions, read_options
from ..formats.paths import expanded, name_of
from ..modules.loading import find_bilm
from .language_model import OPTIONS, refuse_new_run

# What a setting may be

_MOST = {int: 2**63 - 1, float: sys.float_info.max}  # what arrays of int64 and float64 hold
_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": ("{} or more", operator.ge),
    "gt": ("more than {}", operator.gt),
    "le": ("at most {}", operator.le),
    "lt": ("less than {}", operator.lt),
}


def setting(default: Any, text: str, *choices: str, **bounds: float) -> Any:
    """A field of a section. default: MISSING if a config must have it. text: the help. bounds: see `_BOUNDS`."""
    return field(default=default, metadata={"help": text, "choices": choices, "bounds": bounds})


def refuse(key: str, value: object, expected: str) -> None:
    raise SettingsError(f"{key} is {shown(value)}. Expected {expected}.")


class Section:
    """A dataclass of settings, which are checked when it is made. name: of the section in the file."""

    SECTION: ClassVar[str]

    def __init_subclass__(cls, name: str) -> None:
        cls.SECTION = name

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]  # those below are dataclasses
            if entry.metadata:  # others are sections
                value = _checked(f"{self.SECTION}.{entry.name}", getattr(self, entry.name), entry)
                object.__setattr__(self, entry.name, value)  # sections are frozen


def _checked(key: str, value: Any, entry: Field[Any]) -> Any:
    """Return the value of a setting in its final type. Raises SettingsError if it is not of the type or the bounds."""
    optional = type(None) in get_args(entry.type)
    kind: Any = get_args(entry.type)[0] if optional else entry.type
    choices, bounds = entry.metadata["choices"], entry.metadata["bounds"].items()
    if kind is str:
        expected = "one of " + ", ".join(f'"{choice}"' for choice in choices) if choices else "text in quotes"
        fits = isinstance(value, str) and (value in choices if choices else value != "" and "\0" not in value)
    else:
        told = " and ".join(_BOUNDS[name][0].format(f"{bound:,}") for name, bound in bounds)
        expected = f"a {'whole ' * (kind is int)}number, {told}"
        fits = isinstance(value, int | kind) and not isinstance(value, bool) and abs(value) <= _MOST[kind]
        fits = fits and all(_BOUNDS[name][1](value, bound) for name, bound in bounds)
    if value is None and optional:
        return None
    if not fits:
        refuse(key, value, expected + ", or null" * optional)
    return kind(value)


# The sections


@dataclass(frozen=True)
class PathSettings(Section, name="paths"):
    """The files of a run; relative paths begin at the folder that the command runs in."""

    train: str = setting(
        MISSING, "text, one sentence a line (or .jsonl, .csv, .conllu, .spacy; also packed): file, folder or pattern"
    )
    heldout: str | None = setting(None, "text for the held-out perplexity; null: cut off from paths.train")
    vocabulary: str | None = setting(
        None, "one word a line, the most frequent first (elmo vocab writes one); null: built from paths.train"
    )
    init: str | None = setting(
        None, "biLM to go on from, with softmax and words if it has them: folder, run or name; null: random weights"
    )


@dataclass(frozen=True)
class CorpusSettings(Section, name="corpus"):
    """How the text is split, cut and shuffled."""

    language: str | None = setting(None, 'language whose spaCy tokenizer splits the text, like "en"; null: blanks do')
    text_column: str | None = setting(None, "column of the text, if the texts are tables: .csv or .tsv")
    text_field: str | None = setting(None, 'field of the text in JSON lines; null: "text" or "tokens"')
    heldout_share: float = setting(
        0.01, "share of the sentences, the last, held out if paths.heldout is null", gt=0, lt=1
    )
    shuffle_block: int = setting(8192, "sentences of a block, inside which they are shuffled, and the blocks too", ge=1)


@dataclass(frozen=True)
class VocabularySettings(Section, name="vocabulary"):
    """Which words the softmax predicts."""

    size: int = setting(50_000, "words that the softmax predicts, with <S>, </S> and <UNK>", ge=4)
    min_count: int | None = setting(1, "how often a word must occur; null: 2 if all would fit, else 1", ge=1)


@dataclass(frozen=True)
class SoftmaxSettings(Section, name="training.softmax"):
    """How the loss is computed: sampled after Jean et al. 2015."""

    kind: str = setting("sampled", '"sampled" (log-uniform, corrected) or "full"', "sampled", "full")
    negatives: int = setting(4_096, "sampled words, shared by a batch and both directions", ge=1)

    def __post_init__(self) -> None:
        if self.kind == "adaptive":
            expected = '"sampled" or "full": the adaptive softmax was removed. Start a new run with one of them, or go '
            refuse("training.softmax.kind", self.kind, expected + "on with version 0.1.0, which has it")
        super().__post_init__()


@dataclass(frozen=True)
class OptimizerSettings(Section, name="training.optimizer"):
    """The optimizer: Muon (Jordan et al. 2024), AdamW (Loshchilov and Hutter 2019), or Adagrad (Duchi et al. 2011).

    Peters et al. 2018 used Adagrad. They started its sums at 1, and multiplied the loss by the steps before clipping.
    """

    name: str = setting(
        "muon",
        '"muon", "adamw" or "adagrad"; learning_rate, clip_norm and loss_scale belong to it: change all or none',
        *("muon", "adamw", "adagrad"),
    )
    learning_rate: float = setting(8e-3, "highest rate of the schedule", gt=0)
    beta1: float = setting(0.9, "decay of the mean of the gradients; AdamW's", ge=0, lt=1)
    beta2: float = setting(0.99, "decay of the mean of the squared gradients; AdamW's", ge=0, lt=1)
    epsilon: float = setting(1e-8, "added to the denominator of an update; AdamW's", gt=0)
    momentum: float = setting(0.95, "decay of the mean of the gradients; Muon's", ge=0, lt=1)
    weight_decay: float = setting(0.0, "of the biLM's weights, not of its biases; AdamW's and Muon's", ge=0)
    initial_accumulator: float = setting(1.0, "first value of the sums of squared gradients; Adagrad's", ge=0, le=1e30)
    clip_norm: float = setting(1.0, "bound of the gradient's global norm", gt=0)
    loss_scale: float = setting(1.0, "factor of the mean loss, before the gradient is clipped", gt=0, le=10**6)


@dataclass(frozen=True)
class ScheduleSettings(Section, name="training.schedule"):
    """The learning rate over the run: a linear rise, a constant part, and a fall."""

    kind: str = setting(
        "linear",
        'how the rate falls: "constant" (not at all), "linear" or "cosine"',
        *("constant", "linear", "cosine"),
    )
    warmup_steps: int = setting(300, "updates in which the rate rises from 0", ge=0)
    decay_share: float = setting(0.5, "last share of the run, in which it falls", ge=0, le=1)
    final_share: float = setting(0.0, "share of the rate that is left at the end of the run", ge=0, le=1)


@dataclass(frozen=True)
class TrainingSettings(Section, name="training"):
    """The batches, the length of the run, and what computes."""

    streams: int = setting(256, "rows of a batch, of all processes together", ge=1, le=10**6)
    steps: int = setting(20, "positions of a row: the steps of truncated back-propagation", ge=1, le=10**6)
    zero_state_share: float = setting(
        0.75, "share of the streams whose sentences start from the zero state", ge=0, le=1
    )
    dropout: float = setting(0.0, "on the inputs of each LSTM layer and the outputs of the top layer", ge=0, lt=1)
    epochs: float = setting(5.0, "length of the run", gt=0, le=10**6)
    total_tokens: int | None = setting(None, "length of the run in tokens; null: epochs counts", ge=1)
    average_share: float = setting(
        0.0,
        "horizon of an average of the weights, saved in their place, as a share of the run, like 0.01; 0: none",
        ge=0,
        le=0.5,
    )
    accumulate: int = setting(1, "batches of an update", ge=1, le=10**6)
    frozen_tokens: int = setting(0, "first tokens of a run from paths.init, which train the softmax alone", ge=0)
    weight_bits: int | None = setting(
        None, "bits of the biLM's matrices while a run from paths.init trains; null: all", ge=2, le=16
    )
    workers: int = setting(2, "threads of a process, 1 or an even number", ge=1, le=1024)
    readers: int = setting(0, "processes that read the text ahead, for a GPU; 0: none", ge=0, le=256)
    precision: str = setting(
        "auto",
        'of the matrix multiplications: "float32", "bfloat16", or "auto": bfloat16 if the machine has it',
        *("auto", "float32", "bfloat16"),
    )
    device: str = setting("cpu", '"cpu" or "cuda"', "cpu", "cuda")
    seed: int = setting(0, "of the weights, the order of the sentences, and all else that is random", ge=0)
    patience: int = setting(0, "evaluations without a better perplexity until the run stops; 0: never", ge=0)
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

    every: int = setting(2_000, "updates from one evaluation to the next", ge=1)
    checkpoint_every: int = setting(500, "updates from one checkpoint to the next", ge=1)
    sentences: int = setting(
        1_000, "held-out sentences scored during the run, from the whole held-out text; at its end all are", ge=1
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
        if training.frozen_tokens and paths.init is None:
            expected = "0 where paths.init is not set: a biLM of random weights is not to be frozen"
            refuse("training.frozen_tokens", training.frozen_tokens, expected)
        if training.weight_bits is not None and paths.init is None:
            expected = "null where paths.init is not set: the steps of few bits are those of trained weights"
            refuse("training.weight_bits", training.weight_bits, expected)


# The config file: spaCy's format, with defaults, overrides and variables

_WITHOUT_EFFECT = ("training.softmax.cutoffs",)  # settings of earlier versions, which their configs have

Tree = dict[str, Any]
# what thinc and configparser raise for malformed files
_MALFORMED = (OSError, ValueError, configparser.Error, LookupError, TypeError, AttributeError, RecursionError)


def read_config(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> PretrainConfig:
    """Read a configuration; settings that it leaves out have their defaults. Raises ElmoError.

    overrides: by full names, as in {"training.epochs": 2}; variables like ${paths.train} see them.
    """
    given = dict(overrides or {})
    _refuse_unknown(given, ", given on the command line")
    tree: Tree = {}
    try:
        written = dict(flat(Config().from_str(expanded(path).read_text(encoding="utf8"), interpolate=False)))
        written = {key: value for key, value in written.items() if key not in _WITHOUT_EFFECT}
        _refuse_unknown(written)
        values = {key: entry.default for key, entry in _fields() if "bounds" in entry.metadata}
        values |= {key: _unescaped(value) for key, value in written.items() if value != {}}  # an empty section
        for key, value in (values | given).items():
            *sections, name = key.split(".")
            if sections == ["paths"] and isinstance(value, str):
                value = os.path.expanduser(value)
            place = tree
            for section in sections:
                place = place.setdefault(section, {})
            place[name] = None if value is MISSING else value
        config: PretrainConfig = _build(PretrainConfig, Config(tree, is_interpolated=False).interpolate())
    except ElmoError as error:
        raise type(error)(f"{path}: {error}") from error
    except _MALFORMED as error:
        reason = " ".join(str(error).split()) or type(error).__name__  # thinc's have several lines
        raise SettingsError(
            f"{path}: not a configuration ({reason}). Expected sections and settings as spaCy's configs have."
        ) from error
    return config


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


def _fields(section: Any = PretrainConfig, prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    """Yield all fields by their full names, sections too."""
    for entry in fields(section):
        yield prefix + entry.name, entry
        if is_dataclass(entry.type) and entry.type is not BiLMOptions:
            yield from _fields(entry.type, f"{prefix}{entry.name}.")


def _refuse_unknown(keys: Iterable[str], where: str = "") -> None:
    known = {key for key, entry in _fields() if "bounds" in entry.metadata}
    known |= {f"bilm.{key}" for key in (*KEYS.values(), "char_cnn.n_characters")}
    sections = {key.rsplit(".", depth)[0] for key in known for depth in range(1, key.count(".") + 1)}
    got = []
    for key in keys:
        if key not in known | sections:
            nearest = get_close_matches(key, known | sections) or get_close_matches(key, known, cutoff=0.4)
            got.append(f"{key} (nearest: {', '.join(nearest)})" if nearest else key)
    if got:
        names = "the names that spacy elmo init-pretrain-config writes"
        raise SettingsError(f"no such settings: {'; '.join(got)}{where}. Expected {names}.")


def _build(section: Any, tree: Tree, prefix: str = "") -> Any:
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
    return Config(asdict(config) | {"bilm": config.bilm.to_dict()})


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
    for key, entry in _fields():
        if "help" in entry.metadata:
            default = None if entry.default is MISSING else json.dumps(entry.default)
            yield Setting(key, default, entry.metadata["help"])


def commented(text: str) -> str:
    """A config with a line of explanation above each setting."""
    helps = {setting.key: setting.help for setting in settings()}
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        if header := re.fullmatch(r"\[(.+)\]", line):
            section = header[1]
        key = section if header else f"{section}.{line.partition(' = ')[0]}"
        lines += [f"# {helps[key]}", line] if key in helps else [line]
    return "\n".join(lines) + "\n"


def command_help() -> str:
    """A paragraph for each setting, as `pretrain --help` shows them."""
    lines = [
        f"--{key}: {text} ({f'default: {default}' if default else 'required'})"
        for key, default, text in settings()
        if "." in key
    ]
    return "\n\n".join(["Settings, which can be given as options:", *lines])
