"""The model card of a trained biLM, README.md in its folder."""

from importlib.metadata import version
from pathlib import Path

from ..errors import CheckpointError
from ..formats.atomic import replacing, writing
from ..formats.paths import name_of
from .config import text_without_folders
from .folder import Run
from .language_model import CARD
from .scoring import Score

_USE = """\
import spacy
nlp = spacy.blank("{language}")
nlp.add_pipe("elmo", config={{"model": {{"options_file": "options.json", "weight_file": "weights.hdf5"}}}})
"""


def write_card(folder: Path, run: Run, step: int, seconds: float, score: Score) -> None:
    """Write README.md into the folder of a model. score: on held-out text. Of paths only the last part is named."""
    language = run.config.corpus.language or run.init_language or "xx"
    parts = [
        "# A biLM",
        "Trained with spacy-elmo, a plugin for spaCy. Its files can be used wherever ELMo's official ones can.",
        _table(_model(run, step, seconds)),
        "## Perplexity",
        _perplexity(score) + _repeated(run),
        "## Data",
        _data(run),
        "## Use",
        f"In the folder of this file:\n\n```python\n{_USE.format(language=language)}```",
        "Then `doc._.elmo` of `doc = nlp(text)` has a vector for each token.",
        "## Settings",
        f"```ini\n{text_without_folders(run.config)}```",
    ]
    with replacing(folder / CARD, CheckpointError) as temporary, writing(folder / CARD, CheckpointError):
        text = "\n\n".join(parts) + "\n"
        temporary.write_text(text, encoding="utf8", errors="backslashreplace")  # file names may be other bytes


def _model(run: Run, step: int, seconds: float) -> dict[str, str]:
    options, language, init = run.config.bilm, run.config.corpus.language, run.config.paths.init
    filters = ", ".join(f"{n} of {width}" for width, n in options.filters)
    tokens, epoch = step * run.config.training.tokens_per_update, run.train.n_tokens + len(run.train)
    rows = {
        "character encoder": f"dim {options.char_dim}; filters: {filters} characters; {options.activation}; "
        f"highway layers: {options.n_highway}",
        "LSTM": f"dim {options.dim}, projection {options.projection_dim}, layers a direction: {options.n_layers}",
        "vectors": f"{options.layers} layers of {options.width}",
        "parameters": f"{options.n_parameters:,}, without the softmax",
        "vocabulary": f"{len(run.vocabulary):,} words to predict, `<S>`, `</S>` and `<UNK>` included",
    }
    if init is not None:
        weights = "" if run.init_sha256 is None else f", SHA-256 of its weights {run.init_sha256}"
        rows["tuned from"] = f"`{name_of(init)}`{weights}. What it had read and its licence are in its own card"
    if language is None:
        told = f"{run.init_language}, that of the biLM it was tuned from" if run.init_language else "not told"
        language = f"{told}; words were separated by blanks"
    return rows | {
        "language": language,
        "tokens seen": f"{tokens:,} of one direction, `</S>` counted: {tokens / epoch:.2f} epochs in {step:,} updates",
        "time": f"{seconds / 3600:.2f} hours, processes: {run.processes}",
        "files": "`options.json` and `weights.hdf5` in the official format; `softmax.hdf5` and `vocabulary.txt`",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("spacy-elmo", "torch")),
    }


def _perplexity(score: Score) -> str:
    values = dict(zip(("forward", "backward", "mean"), (f"{value:.1f}" for value in score.perplexities)))
    return (
        f"{_table(values, '', 'held-out perplexity')}\n\n"
        f"Of {score.sentences:,} held-out sentences, each from the zero state, by the full softmax: "
        f"{score.predictions:,} predictions a direction, boundaries counted. {score.unknown_share:.2%} of the tokens "
        "are outside the vocabulary; they are predicted as `<UNK>`, and count. The mean is exp of the mean of both "
        "directions' losses."
    )


def _repeated(run: Run) -> str:
    if run.repeated is None:
        return ""
    n = len(run.heldout)
    lower = ", which makes the perplexity lower than that of other text" if run.repeated else ""
    told = f"Of all {n:,} held-out sentences, {run.repeated:,} ({run.repeated / n:.2%}) are in the training text too"
    return f" {told}, word for word{lower}."


def _data(run: Run) -> str:
    coverage, rows, bad = run.vocabulary.coverage, {}, []
    for name, source, corpus in run.texts:
        report = corpus.meta.report
        rows[name] = f"`{name_of(source)}`, {len(corpus):,} sentences, {corpus.n_tokens:,} tokens"
        rows[name] += f", bad lines left out: {report.n_bad:,}" if report.n_bad else ""
        if run.config.paths.heldout is not None:  # else each is a part of its sentences
            rows[name] += f", SHA-256 of its sentences {corpus.meta.sha256}"
        bad += [f"- {name_of(line.file)}, line {line.line:,}: {line.reason}" for line in report.bad]
    known = "" if coverage is None else f"\n\nThe vocabulary covers {coverage:.2%} of the training text's tokens."
    return _table(rows) + known + ("\n\nLines that were left out, the first of them:\n\n" + "\n".join(bad)) * bool(bad)


def _table(rows: dict[str, str], *header: str) -> str:
    lines = ["| " + " | ".join(header or ("", "")) + " |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows.items()])
