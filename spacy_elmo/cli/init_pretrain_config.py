"""`elmo init-pretrain-config`: a config that trains a biLM."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CommandError, CorpusError
from ..formats.text import find_files, refuse_inside, splitter
from .console import escaped, msg, quoted
from .shared import STANDARD_OUTPUT, Force, OldLanguage, TextLanguage, check_output, refuse_in_model, write_text

if TYPE_CHECKING:
    from ..pretraining.config import PretrainConfig

_FROZEN = 2_000_000  # tokens that fit a new softmax (docs/pretraining.md), if the run is long enough
_LATER = "train"  # instead of a path that is not known yet
_FITTED = (  # settings that depend on the text
    "training.softmax.kind",
    "training.streams",
    "training.epochs",
    "training.schedule.warmup_steps",
    "evaluation.every",
    "evaluation.checkpoint_every",
    "evaluation.sentences",
)


class SizeName(str, Enum):
    """The names of pretraining.presets.Size, whose import would slow down the start of every command."""

    tiny = "tiny"
    mini = "mini"
    midi = "midi"
    small = "small"
    medium = "medium"
    original = "original"


def init_pretrain_config(
    output_file: Annotated[Path, typer.Argument(metavar="OUT", help="The config to write; - is standard output")],
    train: Annotated[
        str | None, typer.Option(help="Text, one sentence a line: a file, a folder or a pattern", metavar="TEXT")
    ] = None,
    heldout: Annotated[
        str | None, typer.Option(help="Held-out text; default: a part of the training text", metavar="TEXT")
    ] = None,
    lang: TextLanguage = None,
    size: Annotated[
        SizeName | None,
        typer.Option(
            help="Of the network; tiny: for a first try or a small text; original: its authors' training settings as "
            "well; left out: mini"
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="biLM to tune: its folder, that of a pretraining run (for its model-best), or its name",
            metavar="MODEL",
        ),
    ] = None,
    force: Force = False,
    language: OldLanguage = None,
) -> None:
    """Write a config for spacy elmo pretrain.

    Each setting has a comment. The text is counted, so that streams, warm-up, epochs and evaluations fit it.
    """
    from ..pretraining.folder import find_init
    from ..pretraining.language_model import has_softmax, no_softmax

    if output_file != STANDARD_OUTPUT:
        check_output(output_file, force=force)
        for source in filter(None, (train, heldout)):
            try:
                find_files(source)
            except CorpusError:  # it may come later
                continue
            refuse_inside(source, output_file)
    note = None
    if init is not None:
        find_init(init)
        if output_file != STANDARD_OUTPUT and output_file.exists():
            refuse_in_model(output_file, init)
        if not has_softmax(init):
            note = (
                f"{no_softmax(init)} This config sets training.frozen_tokens. These tokens are part of the run, so as "
                "many fewer train the biLM. To tune it with all tokens, get its softmax and write the config again, "
                "with --force."
            )
    text, message = config_text(None if size is None else size.value, train, heldout, lang or language, init)
    if output_file == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
        for told in filter(None, (message, note)):
            typer.echo(escaped(told), err=True)
        return
    write_text(text, output_file)
    msg.info(message)
    if note is not None:
        msg.warn(note)
    msg.good(f"{output_file}: train it with")
    missing = "" if train else " --paths.train TEXT"
    folder = Path("runs") / output_file.stem
    typer.echo(f"python -m spacy elmo pretrain {quoted(output_file)} {quoted(folder)}{missing}")


def config_text(
    size: str | None, train: str | None, heldout: str | None, language: str | None, init: str | None = None
) -> tuple[str, str]:
    """Return a complete config with comments, and a message on how it fits the text.

    size: of the network; None: mini, or that of `init`.
    train: the training text; None: paths.train is null.
    heldout: the held-out text; None: a part of the training text.
    init: a biLM to tune, a folder (of a run too) or a name; None: random weights.

    Raises ElmoError if a path can't stand in a config, if the language is unknown, if both `size` and `init` are set,
    or if the training text or the words of `init` can't be read.
    """
    from ..pretraining.config import PathSettings, commented, to_config, to_text
    from ..pretraining.language_model import has_softmax
    from ..pretraining.presets import Size, config_of_size, tuning_config

    for path in (train, heldout, init):
        if path is not None and "${" in path:
            raise CommandError(
                f"{path}: has ${{, with which a variable begins in a config. Expected a path without it: rename "
                "the file or folder, or give a relative path from inside of it."
            )
    splitter(language)  # so that a language which spaCy does not know is refused now
    paths = PathSettings(_LATER if train is None else train, heldout, init=init)
    if init is None:
        settings = config_of_size(Size(size or "mini"), paths, language)
    elif size is None:
        settings = _with_words_of(init, tuning_config(paths, language))
    else:
        raise CommandError(
            f"--init is {init} and --size {size}. Expected one of them: a biLM that is tuned has its own "
            "size. Leave out --size, or --init if you want a new biLM."
        )
    message = "without --train, the settings are those for a large text"
    has_words = init is not None and has_softmax(init)
    tokens = None
    if train is not None:
        settings, message, tokens = _fitted(settings, not has_words)
    if init is not None and not has_words:
        frozen = _FROZEN if tokens is None else min(_FROZEN, tokens // 2)
        settings = replace(settings, training=replace(settings.training, frozen_tokens=frozen))
    if has_words and settings.training.softmax.kind == "full":
        message += f"; training.softmax.kind is full, because {init} predicts few words"
    config = to_config(settings)
    if init is not None:
        del config["bilm"]
    config["paths"]["train"] = train
    return commented(to_text(config)), message


def _with_words_of(init: str, settings: PretrainConfig) -> PretrainConfig:
    """Return settings whose softmax fits that of a biLM to tune. Raises ElmoError if its softmax can't be read.

    An adaptive one stays adaptive. If the biLM predicts fewer words than would be sampled, the softmax is full.
    """
    from ..modules.loading import is_embedded
    from ..modules.softmax import AdaptiveSoftmax
    from ..pretraining.language_model import SOFTMAX, WORDS, read_output_layer, softmax_folder
    from ..pretraining.vocabulary import read_words

    folder, softmax = softmax_folder(init), settings.training.softmax
    if folder is None or not all((folder / name).is_file() for name in (SOFTMAX, WORDS)):
        return settings  # without a softmax its words are not used either
    layer = read_output_layer(folder / SOFTMAX, untrusted=not is_embedded(init))
    if isinstance(layer, AdaptiveSoftmax):
        adaptive = replace(softmax, kind="adaptive", cutoffs=tuple(layer.cutoffs))
        return replace(settings, training=replace(settings.training, softmax=adaptive))
    if len(read_words(folder / WORDS)) >= softmax.negatives:
        return settings
    return replace(settings, training=replace(settings.training, softmax=replace(softmax, kind="full")))


def _fitted(large: PretrainConfig, own_words: bool) -> tuple[PretrainConfig, str, int]:
    """Return settings that fit a text, what was counted and changed, and the length of the run in tokens.

    own_words: whether the vocabulary is built from the text.
    """
    from ..pretraining.presets import enough_sentences, enough_tokens, fit
    from ..pretraining.text import count_text

    source = large.paths.train
    try:
        size = count_text(source, large.corpus.language, enough_tokens(large), enough_sentences(large))
    except CorpusError as error:
        raise CommandError(
            f"{error} The settings depend on the text, so none were written. Leave out --train for the settings "
            "of a large text, and name the text in paths.train later."
        ) from error
    fitted, before, updates = fit(large, size, own_words)
    length = updates * fitted.training.tokens_per_update
    if fitted == large:
        more = "" if size.complete else " or more"
        told = f"{source}: {size.tokens:,} tokens{more}: {before:,} updates{more}, the settings for a large text"
        return large, told, length
    changes = []
    for name in _FITTED:
        before_and_after = [attrgetter(name)(settings) for settings in (large, fitted)]
        if before_and_after[0] != before_and_after[1]:
            value, after = (each if isinstance(each, str) else f"{each:,}" for each in before_and_after)
            changes.append(f"{name} {after} in place of {value}")
    about = "" if large.corpus.language is None else "about "  # the tokenizer has read a part of the text
    message = (
        f"{source}: {size.sentences:,} sentences, {about}{size.tokens:,} tokens. The settings for a large text would "
        f"make {before:,} updates; these make {updates:,}: {'; '.join(changes)}"
    )
    return fitted, message, length
