"""The section of docs/results.md on the biLMs themselves, and on fewer bits, from the files in results/bilms/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spacy_elmo.pretraining.language_model import SOFTMAX, WEIGHTS

from ..bilms.measure_bilms import BILMS, NOVELS
from ..bilms.measure_bits import EMBEDDED, SENTENCES
from ..bilms.measures import bilm_result_of
from ..shared.messages import Messages
from .figures import percent
from .results_tables import table
from .run_files import amount, read_record, understood

_BITS = "bits"
_TEXTS = {"wikipedia": "Wikipedia", "novels": "novels", "newswire": "newswire", "tweets": "tweets"}
_MEAN = "the mean of the layers"

_READING = f"""\
Perplexity from the zero state, by a softmax over the 50,000 words of `en_mini`; all other words count as `<UNK>`. It is
exp of the mean loss of both directions. The biLMs have not read these texts: the held-out articles of Wikipedia, the
first {NOVELS:,} held-out sentences of novels, and the development parts of Worldwide Newswire and Broad Twitter.
Tags: what a linear classifier of the universal tags of UD English EWT gets right on the development part, in %."""
_BITS_READING = f"""\
The biLM of which `en_mini` was made, as it was trained, and its copies by
[`elmo pack`](pretraining.md#a-smaller-file). `en_mini` is the copy with `--bits 8`. Change: the norm of the change of a
layer's vectors, as a share of their norm, over {EMBEDDED} sentences of held-out Wikipedia. Perplexity: of its first
{SENTENCES:,} sentences, with the softmax of the copy."""


def bilm_parts(project: Path) -> list[str]:
    """Return the paragraphs of the section; none without results. Raises CommandError if a file can't be used."""
    names = (*BILMS, _BITS)
    found = {name: read_record(bilm_result_of(project, name), Messages.BILM_RESULT) or {} for name in names}
    parts = ["## The biLMs"] if any(found.values()) else []
    measured = {name: found[name] for name in BILMS if found[name]}
    for name, record in measured.items():
        with understood(bilm_result_of(project, name), Messages.BILM_RESULT):
            if name not in record["command"].split():
                raise ValueError(f"its command is that of another biLM: {record['command']}")
    if measured:
        with understood(project / "results" / "bilms", Messages.BILM_RESULT):
            parts += ["\n".join(map(_source, measured.values())), _READING + _left_out(measured), bilms_table(measured)]
    if bits := found[_BITS]:
        with understood(bilm_result_of(project, _BITS), Messages.BILM_RESULT):
            parts += ["### Fewer bits", _source(bits), _BITS_READING, bits_table(bits["result"])]
    return parts


def _source(record: Mapping[str, Any]) -> str:
    facts = [f"`{record['command']}`", f"commit {record['commit'] or 'unknown'}", record["machine"]]
    return f"- {'; '.join(facts)}; {float(record['minutes']):.0f} minutes, while the machine did other work."


def _left_out(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what to say of sentences that no perplexity counts."""
    texts = [record["result"]["perplexities"] for record in records.values()]
    counts = {title: max(int(text[name].get("left_out", 0)) for text in texts) for name, title in _TEXTS.items()}
    told = ", ".join(f"{n} of {title}" for title, n in counts.items() if n)
    return f" Sentences left out, because a word of theirs is empty or has blanks: {told}." if told else ""


def bilms_table(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with a column for each biLM. records: what was measured of each, by its name.

    Raises ValueError if they were measured on different texts, and KeyError if something is missing.
    """
    results = {name: record["result"] for name, record in records.items()}
    rows = [
        ["weights, first digits of the SHA-256", *(str(result["weights"]) for result in results.values())],
        ["parameters", *(f"{result['parameters']:,}" for result in results.values())],
    ]
    rows += [[f"{file}, MB", *(_megabytes(result, file) for result in results.values())] for file in (WEIGHTS, SOFTMAX)]
    for name, title in _TEXTS.items():
        texts = [result["perplexities"][name] for result in results.values()]
        sizes = {f"{text['sentences']:,} sentences, {text['tokens']:,} words" for text in texts}
        if len(sizes) > 1:
            raise ValueError(f"{' and '.join(results)} were measured on different texts of {title}: {sorted(sizes)}")
        rows.append([f"perplexity, {title}: {sizes.pop()}", *(f"{amount(text['perplexity']):.1f}" for text in texts)])
    tags = [[percent(share) for share in result["tags"]] for result in results.values()]
    for number, shares in enumerate(zip(*tags, strict=True)):
        layer = _MEAN if number == len(tags[0]) - 1 else f"layer {number}"
        rows.append([f"tags, {layer}", *shares])
    return table(["", *(f"`{name}`" for name in results)], rows)


def bits_table(result: Mapping[str, Any]) -> str:
    """Return a table with a row for the biLM as it was trained, and for each copy.

    result: what measure_bits.py has measured. Raises KeyError if something is missing.
    """
    n_layers = len(result["tags"]) - 1
    rows = [_row("as it was trained", result, [""] * n_layers)]
    for copy in result["copies"]:
        if len(copy["tags"]) != n_layers + 1:
            raise ValueError(f"{copy['setting']} has {len(copy['tags'])} shares of tags, not {n_layers + 1}")
        changes = [f"{100 * amount(change):.2g} %" for change in copy["layer_changes"]]
        rows.append(_row(f"`{copy['setting']}`", copy, changes))
    head = ["", *(f"{file}, MB" for file in (WEIGHTS, SOFTMAX)), *(f"change of layer {n}" for n in range(n_layers))]
    return table([*head, "perplexity", "tags: layers 0, 1 ..., their mean"], rows)


def _row(title: str, measured: Mapping[str, Any], changes: Sequence[str]) -> list[str]:
    sizes = [_megabytes(measured, file) for file in (WEIGHTS, SOFTMAX)]
    return [title, *sizes, *changes, f"{amount(measured['perplexity']):.1f}", ", ".join(map(percent, measured["tags"]))]


def _megabytes(measured: Mapping[str, Any], file: str) -> str:
    return f"{amount(measured['bytes'][file]) / 1e6:.1f}"
