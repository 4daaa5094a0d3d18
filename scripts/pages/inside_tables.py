"""The section of docs/results.md on what each layer of the biLM knows, from the files in results/inside/."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..inside.inside_runs import inside_result_of
from ..shared.messages import Messages
from .figures import percent
from .results_tables import table
from .run_files import read_record, understood

JUDGED = Path(__file__).parents[1] / "inside" / "judged_neighbours.tsv"
_PROBES = {
    "probe_upos": ("universal tags, UD English EWT", "accuracy"),
    "probe_tag": ("fine tags (XPOS), UD English EWT", "accuracy"),
    "probe_ent": ("entities, Broad Twitter", "f1"),
}
_PAPER = {"probe_tag": ("97.3", "96.8"), "senses": ("67.4", "69.0")}  # first and second LSTM layer
_LAYERS = ["layer 0", "layer 1", "layer 2", "mean"]
_HEAD = ["question", "without a layer", *_LAYERS, "the paper's layer 1", "the paper's layer 2"]
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")

_READING = """\
What each layer of `en_mini` tells, as in section 5.3 of the paper. Layer 0 sees the characters of a word alone; 1 and 2
are the LSTM layers. Tags: the accuracy, in %, of a linear classifier on each frozen layer, on the development part.
Entities: the same, but F1 of the labels other than `O`, token by token. Senses: the nearest mean vector in SemCor, F1
over all test sets. "Without a layer": the most frequent label of the word, or its first sense. The paper's figures are
for the fine tags of the Penn Treebank, and for other test sets of senses, where the first sense has 65.9. Each figure
is of one classifier.
[Inside the biLM](inside.md) says more."""
_NEIGHBOURS = """\
Ten ambiguous words, each in two sentences. Words and sentences were chosen before any neighbour was looked at. The
corpus is the training parts of UD English EWT (CC BY-SA 4.0) and Broad Twitter (CC BY 4.0): {tokens:,} words in
{sentences:,} sentences. The five nearest other words in layer 0, which knows no sentence, are mostly words that look
like it. The five nearest in layer {layer} are searched among all words of the corpus in their sentences; at most one
comes from each sentence."""
_VERDICTS = """\
Right: judged by hand, by one judge, who knew the query. A neighbour is right if it is the word itself in the sense of
the query, or another word that means nearly the same, or the same kind of thing or act. Of all {count}, {right} are
right; for {both} of the {words} words the first neighbour is right in both sentences. Of the {sentences} sentences,
{weak} have one right neighbour at most."""


def inside_parts(project: Path) -> list[str]:
    """Return the paragraphs of the section; none without results. Raises CommandError if a file can't be used."""
    names = (*_PROBES, "senses", "neighbours")
    found = {name: read_record(inside_result_of(project, name), Messages.INSIDE_RESULT, "bilm") for name in names}
    there = {name: data for name, data in found.items() if data is not None}
    if not there:
        return []
    parts = ["## Inside the biLM", _source(there), _READING]
    with understood(project / "results" / "inside", Messages.INSIDE_RESULT):
        if rows := layer_rows(there):
            parts += [table(_HEAD, rows), finding(rows)]
        if random := random_rows(there):
            parts += ["The same network with random weights:", table([_HEAD[0], *_LAYERS], random)]
        if "senses" in there:
            parts += ["Word senses, F1 in %, for each test set:", senses_table(there["senses"]["result"])]
        if "neighbours" in there:
            parts.append("### Neighbours in context")
            parts += neighbour_parts(there["neighbours"]["result"], read_verdicts(JUDGED))
    if missing := [name for name in found if name not in there]:
        listed = ", ".join(f"`{inside_result_of(Path(), name).as_posix()}`" for name in missing)
        parts.append(f"Missing when this page was written: {listed}.")
    return parts


def _source(results: dict[str, dict[str, Any]]) -> str:
    facts = {
        name: sorted({str(data[name]) for data in results.values() if data[name]})
        for name in ("commit", "machine", "bilm")
    }
    minutes = sum(data["minutes"] for data in results.values())
    commits = ", ".join(facts["commit"]) or "unknown"
    return (
        f"`python -m spacy project run inside .`; commit {commits}; {'; '.join(facts['machine'])}; "
        f"`en_mini` {', '.join(facts['bilm'])}; {minutes:.0f} minutes in all, while the machine did other work."
    )


def layer_rows(results: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Return a row for each question: its name, figures without a layer, of each layer and of the paper."""
    rows = []
    for name, (title, key) in _PROBES.items():
        if name in results:
            result = results[name]["result"]
            if result["attribute"] != name.removeprefix("probe_"):
                raise ValueError(f"results/inside/{name}.json is of the attribute {result['attribute']!r}")
            _check(result["layers"], name)
            values = [result["majority"][key], *(layer["trained"][key] for layer in result["layers"])]
            rows.append([title, *map(percent, values), *_PAPER.get(name, ("", ""))])
    if "senses" in results:
        total = results["senses"]["result"]["all"]
        for test in (*results["senses"]["result"]["tests"], total):
            _check(test["layers"], "senses")
        values = [total["first_sense"]["f1"], *(layer["f1"] for layer in total["layers"])]
        rows.append(["word senses, SemCor", *map(percent, values), *_PAPER["senses"]])
    return rows


def _check(layers: Sequence[dict[str, Any]], name: str) -> None:
    """Raise ValueError if these are not the layers of the table."""
    if (found := [layer["layer"] for layer in layers]) != [0, 1, 2, "mean"]:
        raise ValueError(f"results/inside/{name}.json has the layers {found}")


def random_rows(results: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Return a row for each probe of the network with random weights."""
    rows = []
    for name, (title, key) in _PROBES.items():
        if name in results:
            layers = results[name]["result"]["layers"]
            rows.append([title, *(percent(layer["random"][key]) for layer in layers)])
    return rows


def finding(rows: Iterable[Sequence[str]]) -> str:
    """Return which LSTM layer is the better one for each question, and if neither is worth it.

    rows: as of `layer_rows`.
    """
    better: dict[str, list[str]] = {"Layer 1 is better": [], "Layer 2 is better": [], "Layers 1 and 2 are alike": []}
    first, second, alike = better.values()
    plain = []
    for name, without, _, one, two, *_ in rows:
        points = float(one) - float(two)
        found = alike if points == 0 else first if points > 0 else second
        found.append(f"{name} (by {abs(points):.1f})" if points else name)
        if float(without) > max(float(one), float(two)):
            plain.append(name)
    lines = [f"{what} for {'; '.join(names)}." for what, names in better.items() if names]
    lines.append("In the paper, layer 1 is better for tags, and layer 2 for senses.")
    if plain:
        lines.append(f"What needs no layer is better than both for {'; '.join(plain)}.")
    return " ".join(lines)


def senses_table(result: dict[str, Any]) -> str:
    """Return F1 of the first sense and of each layer, for each test set and for all."""
    tests = [*result["tests"], {"test": "all", **result["all"]}]
    rows = [
        ["instances", *(f"{test['instances']:,}" for test in tests)],
        ["of them lemmas that SemCor does not have", *(f"{test['not_in_training']:,}" for test in tests)],
        ["first sense of WordNet", *(percent(test["first_sense"]["f1"]) for test in tests)],
    ]
    for number, layer in enumerate(tests[0]["layers"]):
        name = "mean of the layers" if layer["layer"] == "mean" else f"layer {layer['layer']}"
        rows.append([name, *(percent(test["layers"][number]["f1"]) for test in tests)])
    return table(["", *(Path(test["test"]).stem for test in tests)], rows)


def read_verdicts(path: Path) -> dict[tuple[str, str, int, str], bool]:
    """Return whether a neighbour is right, by word, sense, number of the found sentence and found word."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            (row["word"], row["sense"], int(row["sentence"]), row["found"]): row["verdict"] == "right" for row in rows
        }


def neighbour_parts(result: dict[str, Any], verdicts: dict[tuple[str, str, int, str], bool]) -> list[str]:
    """Return the paragraphs on neighbours. Verdicts are left out if a neighbour was not judged.

    verdicts: as of `read_verdicts`.
    """
    rows, judged, both, weak = [], [], 0, 0
    for one in result["words"]:
        of_word = [
            [verdicts.get((one["word"], sense["sense"], near["number"], near["word"])) for near in sense["neighbours"]]
            for sense in one["senses"]
        ]
        static = ", ".join(_escaped(found["word"]) for found in one["static"])
        for number, (sense, marks) in enumerate(zip(one["senses"], of_word)):
            query = " ".join(
                f"**{word}**" if word == one["word"] else _escaped(word) for word in sense["sentence"].split()
            )
            found = "<br>".join(_shown(neighbour) for neighbour in sense["neighbours"])
            right = f"{sum(mark is True for mark in marks)} of {len(marks)}"
            rows.append([static if number == 0 else "", sense["sense"], query, found, right])
            judged += marks
            weak += sum(mark is True for mark in marks) <= 1
        both += all(marks and marks[0] is True for marks in of_word)
    head = ["layer 0", "sense", "query", f"layer {result['layer']}", "right"]
    parts = [_NEIGHBOURS.format(**{name: result[name] for name in ("tokens", "sentences", "layer")})]
    if None in judged:
        return [*parts, table(head[:-1], [row[:-1] for row in rows])]
    counts = {"count": len(judged), "right": sum(map(bool, judged)), "both": both, "words": len(result["words"])}
    counts |= {"sentences": len(rows), "weak": weak}
    return [*parts, _VERDICTS.format(**counts), table(head, rows)]


def _shown(found: dict[str, Any]) -> str:
    words = [*map(_escaped, found["before"]), f"**{_escaped(found['word'])}**"]
    return " ".join([*words, *map(_escaped, found["after"])])


def _escaped(word: str) -> str:
    return _MARKS.sub(r"\\\1", word)
