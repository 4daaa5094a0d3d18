"""A training logger that shows what the scalar mixes learn."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import srsly
from spacy.language import Language
from spacy.training.loggers import console_logger

from ..errors import CommandError, Errors
from .mixes import LearnedMix, learned_mixes

LogStep = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO[str], IO[str]], tuple[LogStep, Callable[[], None]]]


def build_mix_logger(logger: Logger | None = None, output_file: str | None = None) -> Logger:
    """Build spacy-elmo.MixLogger.v1: it logs the softmax weights and gamma of each mix, at each evaluation.

    The weights are those of training. If the optimizer has use_averages, their averages are saved instead.

    logger: another logger, which is called with the same information. The mixes are added to its other_scores, with
        names like "elmo_ner_input_w0" and "elmo_ner_input_gamma". null: spacy.ConsoleLogger.v1.
    output_file: path of a file, to which one line of JSON is written at each evaluation (step, epoch, score, mixes).
        An existing file is replaced. null: the mixes are printed.

    Raises CommandError, in training, if output_file cannot be written.
    """
    inner: Logger = console_logger() if logger is None else logger

    def setup(nlp: Language, stdout: IO[str] = sys.stdout, stderr: IO[str] = sys.stderr) -> tuple[LogStep, Any]:
        log_inner, finalize = inner(nlp, stdout, stderr)
        if output_file is not None:
            _write(output_file, "w", "")

        def log_step(info: dict[str, Any] | None) -> None:
            if info is None:
                log_inner(None)
                return
            mixes = learned_mixes(nlp)
            log_inner(info | {"other_scores": {**info["other_scores"], **_numbers(mixes)}})
            if output_file is None:
                for mix in mixes:
                    stdout.write(f"  {mix.component} {mix.place}: {_line(mix.weights)}, gamma {mix.gamma:.3f}\n")
            else:
                row = {key: info[key] for key in ("step", "epoch", "score")} | {"mixes": [m.to_dict() for m in mixes]}
                _write(output_file, "a", srsly.json_dumps(row) + "\n")

        return log_step, finalize

    return setup


def _line(weights: list[float]) -> str:
    return " ".join(f"{weight:.3f}" for weight in weights)


def _numbers(mixes: list[LearnedMix]) -> dict[str, float]:
    result: dict[str, float] = {}
    for mix in mixes:
        name = f"elmo_{mix.component}_{mix.place}".replace(" ", "_")
        result |= {f"{name}_w{k}": weight for k, weight in enumerate(mix.weights)} | {f"{name}_gamma": mix.gamma}
    return result


def _write(path: str, mode: str, text: str) -> None:
    try:
        with Path(path).open(mode, encoding="utf8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(Errors.LOGGER_FILE.format(path=path, reason=error)) from error
