"""`elmo init-pretrain-config`: a config that trains a biLM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt

from ..errors import CommandError
from ..formats.softmax import read_softmax
from ..modules.loading import files_of
from ..pretraining.config import PathSettings, PretrainConfig, commented, to_config, to_text
from ..pretraining.language_model import SOFTMAX, WORDS, no_softmax, softmax_folder
from ..pretraining.presets import Size, config_of_size, count_text, enough_sentences, enough_tokens, fit, tuning_config
from ..pretraining.vocabulary import read_words
from ..text.stream import Fields, Report
from ..text.words import tokenizer_of
from . import shared
from .console import msg, quoted, to_stderr

_FROZEN = 2_000_000  # tokens that fit a new softmax (docs/pretraining.md), if the run is long enough


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
    """Each setting has a comment. The text is counted, so that streams, warm-up, epochs and evaluations fit it."""
    to_file, note = output_file != shared.DASH, None
    of_init = [] if init is None else files_of(init)
    shared.hold(output_file, [*filter(None, (train, heldout)), *of_init], force=force)
    for path in filter(None, (train, heldout, init)):
        shared.refuse_variables(path, "${")
    if init is not None and size is not None:
        told = f"--init is {init} and --size {size.value}. Expected one of them"
        raise CommandError(f"{told}: a biLM that is tuned has its own size. Leave one of them out.")
    words = None if init is None else softmax_folder(init)  # the folder of its softmax and vocabulary
    tokenizer_of(lang)  # so that a language which spaCy does not know is refused now
    paths = PathSettings("train" if train is None else train, heldout, init=init)
    settings = config_of_size(size or Size.mini, paths, lang) if init is None else tuning_config(paths, lang)
    settings = replace(settings, corpus=replace(settings.corpus, text_column=text_column, text_field=text_field))
    training = settings.training
    if words is not None and (words / WORDS).is_file():
        read_softmax(words / SOFTMAX)  # so that a bad one is refused now
        if len(read_words(words / WORDS)) < training.softmax.negatives:
            settings = replace(settings, training=replace(training, softmax=replace(training.softmax, kind="full")))
    message, frozen, report = "without --train, the settings are those for a large text", _FROZEN, Report()
    if train is not None:
        settings, message, tokens = _fitted(settings, words is None, report)
        frozen = min(_FROZEN, tokens // 2)
    if init is not None and words is None:
        settings = replace(settings, training=replace(settings.training, frozen_tokens=frozen))
        note = f"{no_softmax(init)} This config sets training.frozen_tokens, so as many fewer train the biLM."
    elif init is not None and settings.training.softmax.kind == "full":
        message += f"; training.softmax.kind is full, because {init} predicts few words"
    config = to_config(settings)
    if init is not None:
        del config["bilm"]
    config["paths"]["train"] = train
    text = commented(to_text(config))
    if to_file:
        shared.write_text(text, output_file)
    else:
        typer.echo(text, nl=False)
    with to_stderr(not to_file):
        msg.info(message)
        shared.tell_bad_lines(report)
        if note is not None:
            msg.warn(note)
    if to_file:
        msg.good(f"{output_file}: train it with")
        missing = "" if train else " --paths.train TEXT"
        folder = Path("runs") / output_file.stem
        typer.echo(f"python -m spacy elmo pretrain {quoted(output_file)} {quoted(folder)}{missing}")


def _fitted(large: PretrainConfig, own_words: bool, report: Report) -> tuple[PretrainConfig, str, int]:
    """Return settings that fit a text, what was counted, and the length of the run in tokens."""
    how = large.corpus
    fields: Fields = {"text_column": how.text_column, "text_field": how.text_field}
    size = count_text(large.paths.train, how.language, enough_tokens(large), enough_sentences(large), report, **fields)
    fitted, before, updates = fit(large, size, own_words)
    about = "" if how.language is None else "about "  # the tokenizer has read a part of the text
    more = "" if size.complete else " or more"
    told = f"{large.paths.train}: {size.sentences:,} sentences, {about}{size.tokens:,} tokens{more}: "
    told += f"{updates:,} updates{more}"
    if fitted != large:
        told += ", with settings that fit this text"
        told += f" (those for a large one would make {before:,})" if updates != before else ""
    return fitted, told, updates * fitted.training.tokens_per_update
