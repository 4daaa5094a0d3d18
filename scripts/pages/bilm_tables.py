"""The section of docs/results.md on the biLMs themselves, and on fewer bits, from the files in results/bilms/."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..bilms.measure_bilms import NOVELS
from ..bilms.measure_bits import SENTENCES
from ..bilms.measures import bilm_result_of
from ..shared.messages import Messages
from .results_tables import table
from .run_files import understood

_BILMS = ("en_mini", "en_midi")
_BITS = "bits"
_TEXTS = {"wikipedia": "Wikipedia", "novels": "novels", "newswire": "newswire", "tweets": "tweets"}
_LAYERS = ("layer 0", "layer 1", "layer 2", "the mean of the layers")

_READING = f"""\
Perplexity from the zero state, by a softmax over the 50,000 words of `en_mini`; all other words count as `<UNK>`. It is
exp of the mean loss of both directions. No biLM has read these texts: the held-out articles of Wikipedia, the first
{NOVELS:,} held-out sentences of novels, and the development parts of Worldwide Newswire and Broad Twitter. Tags: what a
linear classifier of the universal tags of UD English EWT gets right on the development part, in %."""
_BITS_READING = """\
A smaller file: `en_mini` as it was trained, and its copies by [`elmo pack`](pretraining.md#a-smaller-file). Change: the
norm of the change of a layer's vectors, as a share of their norm, over 200 sentences. Perplexity: of the first
{sentences:,} sentences of the text of Wikipedia above. `en_mini` is shipped with `--bits 8`."""


def bilm_parts(project: Path) -> list[str]:
    """Return the paragraphs of the section; none without results. Raises CommandError if a file can't be used."""
    found = {name: _read(bilm_result_of(project, name)) for name in (*_BILMS, _BITS)}
    parts = []
    measured = {name: found[name] for name in _BILMS if found[name]}
    if measured:
        parts += ["## The biLMs", "\n".join(map(_source, measured.values())), _READING, bilms_table(project, measured)]
    if bits := found[_BITS]:
        with understood(bilm_result_of(project, _BITS), Messages.BILM_RESULT):
            reading = _BITS_READING.format(sentences=SENTENCES)
            parts += ["### Fewer bits", _source(bits), reading, bits_table(bits["result"])]
    return parts


def _read(path: Path) -> dict[str, Any]:
    """Return a record, {} without one. Raises CommandError if it can't be used."""
    if not path.exists():
        return {}
    with understood(path, Messages.BILM_RESULT):
        data = json.loads(path.read_text(encoding="utf-8"))
        return {name: data[name] for name in ("command", "commit", "machine", "minutes", "result")}


def _source(record: dict[str, Any]) -> str:
    facts = [f"`{record['command']}`", f"commit {record['commit'] or 'unknown'}", record["machine"]]
    return f"{'; '.join(facts)}; {record['minutes']:.0f} minutes, while the machine did other work.  "


def bilms_table(project: Path, records: dict[str, dict[str, Any]]) -> str:
    """Return a table with a column for each biLM. Raises CommandError if a record lacks something."""
    columns = []
    for name, record in records.items():
        with understood(bilm_result_of(project, name), Messages.BILM_RESULT):
            columns.append(_figures(record["result"]))
    rows = [[what, *(column[what] for column in columns)] for what in columns[0]]
    return table(["", *(f"`{name}`" for name in records)], rows)


def _figures(result: dict[str, Any]) -> dict[str, str]:
    figures = {"weights, first digits of the SHA-256": result["weights"], "parameters": f"{result['parameters']:,}"}
    for name, size in result["bytes"].items():
        figures[f"{name}, MB"] = f"{size / 1e6:.1f}"
    for name, title in _TEXTS.items():
        text = result["perplexities"][name]
        figures[f"perplexity, {title}: {text['sentences']:,} sentences, {text['tokens']:,} words"] = (
            f"{text['perplexity']:.1f}"
        )
    for title, share in zip(_LAYERS, result["tags"], strict=True):
        figures[f"tags, {title}"] = _percent(share)
    return figures


def bits_table(result: dict[str, Any]) -> str:
    """Return a table with a row for the biLM as it was trained, and for each copy."""
    rows = [_row("as it was trained", result, [""] * 3)]
    for copy in result["copies"]:
        changes = [f"{100 * change:.2g} %" for change in copy["layers"]]
        rows.append(_row(f"`{copy['setting']}`", copy, changes))
    head = ["", "weights.hdf5, MB", "softmax.hdf5, MB", *(f"change of layer {number}" for number in range(3))]
    return table([*head, "perplexity", "tags: layers 0, 1, 2, their mean"], rows)


def _row(title: str, measured: dict[str, Any], changes: Sequence[str]) -> list[str]:
    sizes = [f"{measured['bytes'][name] / 1e6:.1f}" for name in ("weights.hdf5", "softmax.hdf5")]
    tags = ", ".join(map(_percent, measured["tags"]))
    return [title, *sizes, *changes, f"{measured['perplexity']:.1f}", tags]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
