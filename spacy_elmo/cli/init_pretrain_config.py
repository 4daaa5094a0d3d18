"""`elmo init-pretrain-config`: a config that trains a biLM."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt

from ..errors import CommandError, CorpusError
from ..formats.softmax import read_softmax
from ..modules.loading import files_of
from ..pretraining.config import PathSettings, PretrainConfig, commented, to_config, to_text
from ..pretraining.folder import find_init
from ..pretraining.language_model import SOFTMAX, WORDS, no_softmax
from ..pretraining.presets import Size, config_of_size, enough_sentences, enough_tokens, fit, tuning_config
from ..pretraining.text import count_text
from ..pretraining.vocabulary import read_words
from ..text.stream import Fields, Report
from ..text.words import tokenizer_of
from . import shared
from .console import escaped, msg, quoted

_FROZEN = 2_000_000  # tokens that fit a new softmax (docs/pretraining.md), if the run is long enough
_FITTED = (  # settings that depend on the text
    "training.softmax.kind",
    "training.streams",
    "training.epochs",
    "training.schedule.warmup_steps",
    "evaluation.every",
    "evaluation.checkpoint_every",
    "evaluation.sentences",
)


def init_pretrain_config(
    output_file: Path = Arg(..., metavar="OUT", help="The config to write; - is standard output"),
    train: str | None = Opt(None, metavar="TEXT", help="Text, one sentence a line: a file, a folder or a pattern"),
    heldout: str | None = Opt(None, metavar="TEXT", help="Held-out text; default: a part of the training text"),
    lang: shared.Lang = None,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    size: Size | None = Opt(None, help="Of the network; tiny: for a first try or a small text; default: mini"),
    init: str | None = Opt(None, metavar="MODEL", help="biLM to tune: its folder, that of its run, or its name"),
    force: shared.Force = False,
) -> None:
    """Write a config for spacy elmo pretrain.

    Each setting has a comment. The text is counted, so that streams, warm-up, epochs and evaluations fit it.
    """
    to_file, note = output_file != shared.DASH, None
    if to_file:
        of_init = [] if init is None else files_of(init)
        shared.hold(output_file, [*filter(None, (train, heldout)), *of_init], force=force)
    for path in filter(None, (train, heldout, init)):
        if "${" in path:
            raise CommandError(
                f"{path}: has ${{, with which a variable begins in a config. Expected a path without it: rename "
                "the file or folder, or give a relative path from inside of it."
            )
    if init is not None and size is not None:
        raise CommandError(
            f"--init is {init} and --size {size.value}. Expected one of them: a biLM that is tuned has its own "
            "size. Leave out --size, or --init if you want a new biLM."
        )
    words = None if init is None else find_init(init)  # the folder of its softmax and vocabulary
    tokenizer_of(lang)  # so that a language which spaCy does not know is refused now
    paths = PathSettings("train" if train is None else train, heldout, init=init)
    settings = config_of_size(size or Size.mini, paths, lang) if init is None else tuning_config(paths, lang)
    settings = replace(settings, corpus=replace(settings.corpus, text_column=text_column, text_field=text_field))
    if words is not None:
        settings = _with_words_of(words, settings)
    message, frozen = "without --train, the settings are those for a large text", _FROZEN
    if train is not None:
        settings, message, tokens = _fitted(settings, words is None)
        frozen = min(_FROZEN, tokens // 2)
    if init is not None and words is None:
        settings = replace(settings, training=replace(settings.training, frozen_tokens=frozen))
        note = (
            f"{no_softmax(init)} This config sets training.frozen_tokens. These tokens are part of the run, so as "
            "many fewer train the biLM. To tune it with all tokens, get its softmax and write the config again, "
            "with --force."
        )
    elif init is not None and settings.training.softmax.kind == "full":
        message += f"; training.softmax.kind is full, because {init} predicts few words"
    config = to_config(settings)
    if init is not None:
        del config["bilm"]
    config["paths"]["train"] = train
    text = commented(to_text(config))
    if not to_file:
        typer.echo(text, nl=False)
        for told in filter(None, (message, note)):
            typer.echo(escaped(told), err=True)
        return
    shared.write_text(text, output_file)
    msg.info(message)
    if note is not None:
        msg.warn(note)
    msg.good(f"{output_file}: train it with")
    missing = "" if train else " --paths.train TEXT"
    folder = Path("runs") / output_file.stem
    typer.echo(f"python -m spacy elmo pretrain {quoted(output_file)} {quoted(folder)}{missing}")


def _with_words_of(folder: Path, settings: PretrainConfig) -> PretrainConfig:
    """Return settings whose softmax fits that of a biLM to tune: full, if it predicts few words."""
    softmax = settings.training.softmax
    if not (folder / WORDS).is_file():
        return settings  # without words its softmax is not used either
    read_softmax(folder / SOFTMAX)  # so that a bad one is refused now
    if len(read_words(folder / WORDS)) < softmax.negatives:
        softmax = replace(softmax, kind="full")
    return replace(settings, training=replace(settings.training, softmax=softmax))


def _fitted(large: PretrainConfig, own_words: bool) -> tuple[PretrainConfig, str, int]:
    """Return settings that fit a text, what was counted and changed, and the length of the run in tokens."""
    source = large.paths.train
    try:
        report = Report()
        how = large.corpus
        fields: Fields = {"text_column": how.text_column, "text_field": how.text_field}
        size = count_text(source, how.language, enough_tokens(large), enough_sentences(large), report, **fields)
        fitted, before, updates = fit(large, size, own_words)
    except CorpusError as error:
        raise CommandError(
            f"{error} The settings depend on the text, so none were written. Leave out --train for the settings "
            "of a large text, and name the text in paths.train later."
        ) from error
    length = updates * fitted.training.tokens_per_update
    left_out = (
        f"; lines that can't be used and are left out: {report.n_bad:,} ({report.bad[0]})" if report.n_bad else ""
    )
    if fitted == large:
        more = "" if size.complete else " or more"
        told = f"{source}: {size.tokens:,} tokens{more}: {before:,} updates{more}, the settings for a large text"
        return large, told + left_out, length
    pairs = [(name, *(attrgetter(name)(settings) for settings in (fitted, large))) for name in _FITTED]
    changes = "; ".join(f"{name} {new} in place of {old}" for name, new, old in pairs if new != old)
    about = "" if large.corpus.language is None else "about "  # the tokenizer has read a part of the text
    message = (
        f"{source}: {size.sentences:,} sentences, {about}{size.tokens:,} tokens. The settings for a large text would "
        f"make {before:,} updates; these make {updates:,}: {changes}{left_out}"
    )
    return fitted, message, length
