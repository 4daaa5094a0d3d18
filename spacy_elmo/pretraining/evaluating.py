"""Evaluation during a run: scores held-out sentences, and writes models, their cards, metrics and the plot."""

import math
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import CheckpointError, ElmoError, WeightsError
from ..formats.atomic import replacing, writing
from ..formats.text import name_of
from ..formats.weights import readers_told
from ..modules.loading import card_language, find_bilm
from .checkpoint import CHECKPOINTS, Stop
from .config import PathSettings
from .folder import Run
from .language_model import BEST, CARD, LAST, OPTIONS, LanguageModel
from .metrics import (
    CURVE,
    METRICS,
    CardFacts,
    EvaluationRow,
    InitFacts,
    Reporter,
    RunFacts,
    TextFacts,
    append_row,
    draw_curve,
    read_metrics,
)
from .prepared import PreparedCorpus
from .scoring import Score, score_text
from .trainer import Trainer
from .vocabulary import cut_share, unknown_share

_USE = """\
import spacy
nlp = spacy.blank("{language}")
nlp.add_pipe("elmo", config={{"model": {{"options_file": "options.json", "weight_file": "weights.hdf5"}}}})
"""


def write_card(folder: Path, facts: CardFacts) -> None:
    """Write README.md into the folder of a model, atomically. Of the paths of texts only the last part is named.

    folder: of the model.
    facts: what the card tells.

    Raises CheckpointError if it can't be written.
    """
    path = folder / CARD
    with replacing(path, CheckpointError) as temporary, writing(path, CheckpointError):
        temporary.write_text(card(facts), encoding="utf8", errors="backslashreplace")  # file names may be other bytes


def card(facts: CardFacts) -> str:
    """Return the text of a model card, in Markdown. facts: what it tells."""
    language = facts.language or (facts.run.init.language if facts.run.init else None)
    parts = [
        "# A biLM",
        "Trained with spacy-elmo, a plugin for spaCy. Its files can be used wherever ELMo's official ones can.",
        _table(_model(facts)),
        "## Perplexity",
        _perplexity(facts),
        "## Data",
        _data(facts),
        "## Use",
        f"In the folder of this file:\n\n```python\n{_USE.format(language=language or 'xx')}```",
        "Then `doc._.elmo` of `doc = nlp(text)` has a vector for each token.",
        "## Settings",
        f"```ini\n{facts.settings}```",
    ]
    return "\n\n".join(parts) + "\n"


def _model(facts: CardFacts) -> dict[str, str]:
    options, run = facts.options, facts.run
    filters = ", ".join(f"{n} of {width}" for width, n in options.filters)
    versions = ", ".join(f"{name} {version(name)}" for name in ("spacy-elmo", "torch"))
    return {
        "character encoder": f"dim {options.char_dim}; filters: {filters} characters; {options.activation}; "
        f"highway layers: {options.n_highway}",
        "LSTM": f"dim {options.dim}, projection {options.projection_dim}, layers a direction: {options.n_layers}",
        "vectors": f"{options.layers} layers of {options.width}",
        "parameters": f"{run.parameters:,}, without the softmax",
        "vocabulary": f"{run.words:,} words to predict, `<S>`, `</S>` and `<UNK>` included",
        **_init(facts.run),
        "language": facts.language or _told_language(facts.run),
        "tokens seen": f"{facts.tokens:,} of one direction, `</S>` counted: {facts.epochs:.2f} epochs in "
        f"{facts.step:,} updates",
        "time": f"{facts.seconds / 3600:.2f} hours, processes: {run.processes}",
        "files": "`options.json` and `weights.hdf5` in the official format; `softmax.hdf5` and `vocabulary.txt`",
        "versions": versions,
    }


def _init(run: RunFacts) -> dict[str, str]:
    if run.init is None:
        return {}
    weights = "" if run.init.sha256 is None else f", SHA-256 of its weights {run.init.sha256}"
    return {"tuned from": f"`{name_of(run.init.name)}`{weights}. What it had read and its licence are in its own card"}


def _told_language(run: RunFacts) -> str:
    """Return what is known of the language if the text was not split by a tokenizer."""
    if run.init is None or run.init.language is None:
        return "not told; words were separated by blanks"
    return f"{run.init.language}, that of the biLM it was tuned from; words were separated by blanks"


def _perplexity(facts: CardFacts) -> str:
    score = facts.score
    values = dict(zip(("forward", "backward", "mean"), (f"{value:.1f}" for value in score.perplexities)))
    rate = score.unknown_share
    return (
        f"{_table(values, '', 'held-out perplexity')}\n\n"
        f"Of {score.sentences:,} held-out sentences, each from the zero state, by the full softmax: "
        f"{score.predictions:,} predictions a direction, boundaries counted. {rate:.2%} of the tokens are outside the "
        "vocabulary; they are predicted as `<UNK>`, and count. The mean is exp of the mean of both directions' losses."
    )


def _data(facts: CardFacts) -> str:
    text = _table({"training text": _text(facts.run.train), "held-out text": _text(facts.run.heldout)})
    coverage = facts.run.coverage
    known = "" if coverage is None else f"\n\nThe vocabulary covers {coverage:.2%} of the training text's tokens."
    bad = [
        f"- {name_of(line.file)}, line {line.line:,}: {line.reason}"
        for text_facts in (facts.run.train, facts.run.heldout)
        for line in text_facts.bad
    ]
    listed = "\n\nLines that were left out, the first of them:\n\n" + "\n".join(bad) if bad else ""
    return text + known + listed


def _text(text: TextFacts) -> str:
    parts = [f"`{name_of(text.source)}`", f"{text.sentences:,} sentences", f"{text.tokens:,} tokens"]
    if text.n_bad:
        parts.append(f"bad lines left out: {text.n_bad:,}")
    if text.sha256 is not None:
        parts.append(f"SHA-256 of its sentences {text.sha256}")
    return ", ".join(parts)


def _table(rows: dict[str, str], *header: str) -> str:
    lines = ["| " + " | ".join(header or ("", "")) + " |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows.items()])


WORSE_THAN_CHANCE = 2.0  # times the number of words: random weights may be a little above one


class CardContext(NamedTuple):
    """What all model cards of a run tell beside the scores.

    settings: all settings, in the format of a config file.
    language: of the spaCy tokenizer; None if words were separated by blanks.
    facts: texts, sizes and length of the run.
    """

    settings: str
    language: str | None
    facts: RunFacts


def facts_of(paths: PathSettings, run: Run, trainer: Trainer, evaluated: int) -> RunFacts:
    """Return what is known about a run at its start.

    paths: its files.
    run: what it reads.
    trainer: what it trains.
    evaluated: held-out sentences that it scores during the run, if there are so many.
    """
    cut_off, options = paths.heldout is None, trainer.model.bilm.options
    return RunFacts(
        _read_text(paths.train, run.train, complete=not cut_off),
        _read_text(paths.heldout or paths.train, run.heldout, complete=not cut_off),
        len(run.vocabulary),
        run.vocabulary.coverage,
        options.n_parameters,
        trainer.total_steps * trainer.tokens_per_update,
        trainer.group.size,
        trainer.settings.softmax.kind == "sampled",
        readers_told(options, dict(trainer.model.bilm.named_parameters())),
        options.max_characters,
        cut_share(run.train, options.max_characters),
        unknown_share(run.heldout, run.vocabulary),
        None if paths.init is None else InitFacts(paths.init, run.init, _language_of(paths.init)),
        evaluated if evaluated < len(run.heldout) else None,
    )


def _language_of(init: str) -> str | None:
    try:
        return card_language(str(find_bilm(init) / OPTIONS))
    except ElmoError:  # a biLM whose files were removed after the run began
        return None


class Evaluator:
    """Scores the trainer's model on a fixed selection of held-out sentences, and writes model folders.

    trainer: its model is scored, or that of the average of the weights.
    heldout: the held-out text.
    n_sentences: number of sentences that are scored during the run. `finish` scores all.
    context: what the model cards tell beside the scores.
    output: folder of the run.
    reporter: is told of each evaluation.
    stop: its first signal ends an evaluation at once.
    """

    def __init__(
        self,
        trainer: Trainer,
        heldout: PreparedCorpus,
        n_sentences: int,
        context: CardContext,
        output: Path,
        reporter: Reporter,
        stop: Stop,
    ) -> None:
        self.trainer, self.heldout, self.context = trainer, heldout, context
        self.output, self.reporter, self.stop = output, reporter, stop
        chosen = np.random.default_rng(1).permutation(len(heldout))[:n_sentences]
        self.chosen = np.sort(chosen).tolist()
        self._told_worse = False

    def evaluate(self, seconds: float, loss: float, speed: float, best: float) -> float:
        """Score the selection, and write model-last, the metrics and the plot; model-best too if it is the best so far.

        seconds: of training and evaluation so far.
        loss: smoothed training loss, in nats.
        speed: tokens per second.
        best: lowest perplexity of earlier evaluations.

        Returns the held-out perplexity, the mean of both directions.
        Raises CheckpointError if the perplexity of a trained model is not finite, and Stopped if a signal came before
        the sentences were scored. It then writes nothing.
        """
        trainer = self.trainer
        sentences = [self.heldout.sentence(number) for number in self.chosen]
        try:
            score = self._score(trainer.model_to_keep, sentences, len(sentences))
        except WeightsError as error:  # a loss is not finite
            if trainer.step_number == 0:
                raise
            raise self._diverged() from error
        perplexities = score.perplexities
        if trainer.step_number and not math.isfinite(perplexities.mean):
            raise self._diverged()
        row = EvaluationRow(
            step=trainer.step_number,
            tokens=trainer.tokens,
            epochs=trainer.tokens / trainer.tokens_per_epoch,
            seconds=seconds,
            loss=loss,
            rate=trainer.rate,
            perplexity_forward=perplexities.forward,
            perplexity_backward=perplexities.backward,
            perplexity=perplexities.mean,
            predictions=score.predictions,
            tokens_per_second=speed,
        )
        for name in [LAST, BEST] if perplexities.mean < best else [LAST]:
            self._write(self.output / name, row.seconds, score)
        append_row(self.output / METRICS, row)
        draw_curve(self.output / CURVE, read_metrics(self.output / METRICS))
        self.reporter.evaluated(row)
        self._tell_if_worse_than_chance(perplexities.mean)
        return perplexities.mean

    def _tell_if_worse_than_chance(self, perplexity: float) -> None:
        """Tell once that a trained model is worse than equal probabilities, whose perplexity is the number of words."""
        words, step = len(self.trainer.model.vocabulary.words), self.trainer.step_number
        if step and perplexity > WORSE_THAN_CHANCE * words and not self._told_worse:
            self._told_worse = True
            self.reporter.message(
                f"the held-out perplexity after step {step} is {perplexity:,.0f}, worse than the {words:,} of "
                "equal probabilities for all words of the vocabulary. Probably training.optimizer.learning_rate "
                "is too high, or the text too short for so many epochs: start a new run in another output folder "
                "with a lower one."
            )

    def _diverged(self) -> CheckpointError:
        what = f"the held-out perplexity after step {self.trainer.step_number}"
        return CheckpointError(
            f"{what} is not finite: training has diverged. Start a new run in another output folder, with a lower "
            f"training.optimizer.learning_rate. If there are checkpoints in {self.output / CHECKPOINTS}, they are "
            "of earlier steps, but their weights may already be too large."
        )

    def finish(self, seconds: float) -> None:
        """Score all held-out sentences at the end of a run, and write the cards of model-last and model-best again.

        It does nothing if the selection is the complete held-out text.

        seconds: of training and evaluation.

        Raises Stopped if a signal came before the sentences were scored. Call it again in the resumed run.
        """
        if len(self.chosen) == len(self.heldout):
            return
        self.reporter.message(f"scoring all {len(self.heldout):,} held-out sentences for the model cards")
        score = self._score(self.trainer.model_to_keep, self.heldout, len(self.heldout))
        self._write(self.output / LAST, seconds, score)
        self._tell(LAST, score)
        rows = read_metrics(self.output / METRICS)
        best = min(rows, key=lambda row: row.perplexity) if rows else None
        if best is not None and (self.output / BEST).exists():
            if best.step != self.trainer.step_number:
                score = self._score(LanguageModel.load(self.output / BEST), self.heldout, len(self.heldout))
                self._tell(BEST, score)
            self._card(self.output / BEST, best.step, best.seconds, score)

    def _score(self, model: LanguageModel, sentences: Iterable[list[str]], n_sentences: int) -> Score:
        """Score sentences, and tell the reporter how many are finished. Raises Stopped."""
        scored = 0

        def tell(more: int) -> None:
            nonlocal scored
            scored += more
            self.reporter.evaluating(scored, n_sentences)

        self.reporter.evaluating(0, n_sentences)
        with self.stop.at_once():
            return score_text(model, sentences, tell=tell)

    def _tell(self, name: str, score: Score) -> None:
        perplexities = score.perplexities
        self.reporter.message(
            f"{name} on all {score.sentences:,} held-out sentences: perplexity {perplexities.mean:.2f} (forward "
            f"{perplexities.forward:.2f}, backward {perplexities.backward:.2f})"
        )

    def _write(self, folder: Path, seconds: float, score: Score) -> None:
        self.trainer.model_to_keep.save(folder)
        self._card(folder, self.trainer.step_number, seconds, score)

    def _card(self, folder: Path, step: int, seconds: float, score: Score) -> None:
        tokens = step * self.trainer.tokens_per_update
        epochs = tokens / self.trainer.tokens_per_epoch
        options = self.trainer.model.bilm.options
        settings, language, run = self.context
        write_card(folder, CardFacts(settings, options, language, run, step, tokens, epochs, seconds, score))


def _read_text(source: str, corpus: PreparedCorpus, complete: bool) -> TextFacts:
    report, sha256 = corpus.meta.report, corpus.meta.sha256 if complete else None
    return TextFacts(source, len(corpus), corpus.n_tokens, sha256, report.n_bad, tuple(report.bad))
