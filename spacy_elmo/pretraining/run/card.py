"""README.md of a trained model: its sizes, its data, its perplexity and how to use it."""

from importlib.metadata import version
from pathlib import Path

from ...errors import CheckpointError
from ...formats.atomic import replacing, writing
from ...formats.text.sources import name_of
from ..model.files import CARD
from .facts import CardFacts, RunFacts, TextFacts

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
