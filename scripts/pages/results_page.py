"""Write docs/results.md and its plots: results.md beside this file with the figures of the files in results/.

python -m scripts.pages.results_page --seeds "0 1 2"
"""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import matplotlib

matplotlib.use("Agg")  # draws without a display; must be chosen before pyplot is imported
import typer
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, NullLocator

from ..bilms.latin import SPACY_PRETRAIN, TREEBANKS
from ..runs.experiments import (
    BASELINE,
    BOTH,
    CURVE,
    ELMO,
    FROZEN,
    MINI,
    MINILM,
    NETWORKS,
    PRETRAINED,
    SHORT,
    TASKS,
    VECTORS,
    WORDLLAMA,
    Seeds,
    Task,
    read_results,
    seeds_of,
)
from ..runs.train_runs import bilm_mark
from ..shared import run_command

SHOWN = (BASELINE, ELMO, MINI, VECTORS, BOTH)  # in the tables of the tasks
PAIRS = ((ELMO, BASELINE), (ELMO, MINI), (ELMO, VECTORS), (BOTH, VECTORS), (BOTH, ELMO))
ALTERNATIVES = (BASELINE, VECTORS, PRETRAINED, SHORT, MINI, ELMO, BOTH)
INSTEAD = ((VECTORS, ELMO), (VECTORS, SHORT))
TRANSFORMERS = (BASELINE, WORDLLAMA, ELMO, FROZEN, MINILM)
# Columns of the table of the transformer
BESIDE = {
    "ner_newswire_tenth": "newswire, a tenth: F1",
    "ner_newswire_third": "a third: F1",
    "ner_newswire": "all: F1",
    "ner": "tweets: F1",
    "textcat": "SST-5: accuracy",
    "tagger": "EWT: LAS",
}
# by network: of which embedding, and of which biLM, the training is told
TRAINED = {VECTORS: "floret", PRETRAINED: "spacy_pretrain", SHORT: "short_bilm", BOTH: "floret"}
BILMS = {ELMO: "en_core", MINI: "en_mini", BOTH: "en_core"}
FILES = ("weights.hdf5", "softmax.hdf5")
LATIN = ("pos_acc", "morph_acc", "lemma_acc", "dep_uas", "dep_las")
LATIN_NETWORKS = ("x alone", SPACY_PRETRAIN, "x with vectors", "[x; ELMo]", "[x with vectors; ELMo]")
LANGUAGES = {  # by spaCy's or MasakhaNER's code
    **{"hu": "Hungarian", "grc": "Ancient Greek", "sl": "Slovenian", "uk": "Ukrainian", "he": "Hebrew"},
    **{"swa": "Swahili", "yor": "Yoruba", "ibo": "Igbo", "hau": "Hausa", "sna": "Shona"},
}
TREES = ("x alone", "x with vectors", "[x; ELMo]", "[x with vectors; ELMo]")
_X = ("x", "x with floret")
ENTITIES = (*_X, *(f"[{x}; {bilm}]" for bilm in ("one for all", "tuned", "own") for x in _X))
LAYERS = ("layer 0", "layer 1", "layer 2")
# By the name of a record: the question, its measure and the paper's figures of the two LSTM layers
PROBES = {
    "probe_upos": ("universal tags, UD English EWT", "accuracy", ("", "")),
    "probe_tag": ("fine tags (XPOS), UD English EWT", "accuracy", ("97.3", "96.8")),
    "probe_ent": ("entities, Broad Twitter", "f1", ("", "")),
}
PAPER_SENSES = ("67.4", "69.0")
# Student's t by degrees of freedom, two-sided, 5 %; for more than ten, that of ten
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23}
mean = statistics.mean


# Figures as text


def percent(*shares: float) -> str:
    """Return the mean of shares as a number of percent."""
    return f"{100 * mean(shares):.1f}"


def whole(share: float) -> str:
    return f"{100 * share:.0f} %"


def spread(values: Sequence[float], with_range: bool = False) -> str:
    """Return mean, sample standard deviation and perhaps the range of shares in percent."""
    percents = [100 * value for value in values]
    text = f"{mean(percents):.2f}"
    if len(percents) > 1:
        text += f" ± {statistics.stdev(percents):.2f}"
        text += f" ({min(percents):.2f} to {max(percents):.2f})" if with_range else ""
    return text


def ends(figures: Mapping[str, float], shown: Callable[[float], str]) -> str:
    """Return the least and the largest one of the tasks' figures, with their tasks."""
    titles = sorted(figures, key=lambda title: figures[title])
    return " to ".join(dict.fromkeys(f"{shown(figures[title])} ({title})" for title in (titles[0], titles[-1])))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *below: str) -> str:
    head_line, *others = ("| " + " | ".join(row) + " |" for row in (head, *rows))
    return "\n".join([head_line, "|" + "---|" * len(head), *others, *(f"\n{line}" for line in below)])


def facts(records: Iterable[Mapping[str, Any]], *names: str) -> str:
    """Return the different values of facts of records."""
    found = {name: sorted({str(one[name]) for one in records if one.get(name)}) for name in names}
    marks = {"commit": "commit ", "bilm": "weights "}
    return "; ".join(marks.get(name, "") + ", ".join(values) for name, values in found.items() if values)


def source(*records: Mapping[str, Any]) -> str:
    minutes = sum(record["minutes"] for record in records)
    said = facts(records, "commit", "machine", "bilm")
    return f"{said}; {minutes:.0f} minutes in all, while the machine did other work."


def apart(one: Sequence[float], other: Sequence[float]) -> bool | None:
    """Return whether the means of two networks differ by more than seeds make likely: Student's t-test, 5 %.

    The variances of the two are taken to be the same. None if there are too few runs to tell.
    """
    if min(len(one), len(other)) < 2:
        return None
    freedom = len(one) + len(other) - 2
    squares = sum((len(values) - 1) * statistics.variance(values) for values in (one, other))
    error = math.sqrt(squares / freedom * (1 / len(one) + 1 / len(other)))
    return abs(mean(one) - mean(other)) > STUDENT[min(freedom, 10)] * error


def apart_line(what: str, pairs: Iterable[tuple[str, Sequence[float], Sequence[float]]]) -> str:
    """Return which pairs differ by more than seeds make likely. pairs: a name, and the scores of the runs of two."""
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for name, one, other in pairs:
        if one and other:
            found[apart(one, other)].append(name)
    words = {True: "Yes", False: "No", None: "Too few runs to tell"}
    answers = [f"{word}: {'; '.join(found[answer])}." for answer, word in words.items() if found[answer]]
    return f"{what} by more than seeds make likely (Student's t-test, 5 %)? {' '.join(answers)}" if answers else ""


# Tasks


class Runs(NamedTuple):
    """A task, and the records of its runs."""

    task: Task
    records: Mapping[str, Any]
    seeds: Sequence[int]

    @property
    def title(self) -> str:
        return self.task.title

    @property
    def measure(self) -> str:
        return next(iter(self.task.measures.values()))

    def of(self, network: str) -> list[dict[str, Any]]:
        """Return the runs of a network, in the order of seeds."""
        names = (f"{network}/seed-{seed}" for seed in self.seeds)
        return [self.records[name] for name in names if name in self.records]

    def numbers(self, *networks: str) -> str:
        return ", ".join(str(len(self.of(name))) for name in networks)

    def values(self, network: str, key: str = "", test: str = "") -> list[float]:
        """Return a measure of each run; without names, the first measure on the first test file."""
        key, test = key or next(iter(self.task.measures)), test or next(iter(self.task.tests))
        return [run["tests"][test][key] for run in self.of(network)]

    def cut(self, network: str = ELMO, than: str = BASELINE) -> float:
        """Return how much smaller a network's mean error is than another's: 1 - (1 - F) / (1 - F of the other)."""
        return 1 - (1 - mean(self.values(network))) / (1 - mean(self.values(than)))

    def means(self, *networks: str) -> list[str]:
        return [percent(*self.values(name)) if self.of(name) else "" for name in networks]

    def cuts(self, *networks: str, than: str = BASELINE) -> list[str]:
        return [f"{100 * self.cut(name, than):.1f} %" if self.of(name) and self.of(than) else "" for name in networks]

    def pace(self) -> tuple[float, float, int, str] | None:
        """Return how soon the two main networks learn; None if [x; ELMo] never has the best score of x alone.

        Updates until x alone has its best score on the development part, and until [x; ELMo] has it, as means over the
        runs in which it did; updates between evaluations; and in how many runs of how many.
        """
        runs = [[self.records.get(f"{name}/seed-{seed}", {}) for name in (BASELINE, ELMO)] for seed in self.seeds]
        both = [(alone["curve"], elmo["curve"]) for alone, elmo in runs if alone.get("curve") and elmo.get("curve")]
        found = []
        for alone, elmo in both:
            updates, best = max(alone, key=lambda point: float(point[1]))  # the first one of the best
            found += [(updates, step) for step, score in elmo if score >= best][:1]
        if not found:
            return None
        every = min(later[0] - earlier[0] for alone, _ in both for earlier, later in pairwise(alone))
        until_alone, until_elmo = map(mean, zip(*found))
        return until_alone, until_elmo, every, f"{len(found)} of {len(both)}"


def titles(*networks: str) -> list[str]:
    return [NETWORKS[name].title for name in networks]


def of_all(all_runs: Sequence[Runs], one: str, other: str) -> list[tuple[str, list[float], list[float]]]:
    return [(runs.title, runs.values(one), runs.values(other)) for runs in all_runs]


def summary(all_runs: Sequence[Runs]) -> dict[str, str]:
    """Return what the runs say in the main."""
    pairs = {
        "elmo": (ELMO, BASELINE),
        "vectors": (VECTORS, BASELINE),
        "added": (BOTH, VECTORS),
        "mini": (MINI, BASELINE),
    }
    cuts = {
        name: {runs.title: runs.cut(*pair) for runs in all_runs if all(map(runs.of, pair))}
        for name, pair in pairs.items()
    }
    parts: dict[str, str] = {}
    for name, of_tasks in filter(lambda one: one[1], cuts.items()):
        parts |= {f"{name}_mean": whole(mean(of_tasks.values())), f"{name}_ends": ends(of_tasks, whole)}
        parts[f"{name}_tasks"] = str(len(of_tasks))
    ahead = [title for title, cut in cuts["vectors"].items() if cut > cuts["elmo"][title]]
    paces = [pace[1] / pace[0] for runs in all_runs if (pace := runs.pace())]
    speeds = {}
    for runs in all_runs:
        if "elmo/speed" in runs.records:
            elmo, alone = (runs.records[f"{name}/speed"]["words_per_second"] for name in (ELMO, BASELINE))
            speeds[runs.title] = elmo / alone
    return parts | {
        "vectors_ahead": "; ".join(ahead) or "no task",
        "pace_ends": f"{whole(min(paces))} to {whole(max(paces))}",
        "speed_ends": ends(speeds, whole),
    }


def all_tasks(all_runs: Sequence[Runs]) -> dict[str, str]:
    rows = []
    for runs in all_runs:
        verdict = {True: "yes", False: "no", None: ""}[apart(runs.values(BASELINE), runs.values(ELMO))]
        paper = f"{runs.task.paper[0]:.1f} %, {runs.task.paper[1]}" if runs.task.paper else ""
        cells = [runs.title, runs.measure, *runs.means(*SHOWN), *runs.cuts(ELMO), verdict]
        cells += [*runs.cuts(MINI, VECTORS, BOTH), *runs.cuts(BOTH, than=VECTORS)]
        rows.append([*cells, paper, runs.numbers(*SHOWN)])
    head = ["task", "measure", *titles(*SHOWN), "cut: ELMo", "beyond seeds", "cut: en_mini", "cut: vectors"]
    head += ["cut: both", "cut of ELMo beside vectors", "the paper's", "runs of each"]
    pairs = (("[x; ELMo] and x with static vectors", VECTORS), ("[x; ELMo] and [x; en_mini]", MINI))
    verdicts = [apart_line(f"Do {both} differ", of_all(all_runs, ELMO, other)) for both, other in pairs]
    return {"cuts": table(head, rows, *verdicts)}


def of_task(runs: Runs, data: str, tried: str) -> str:
    """Return the section of a task. data: what it is of. tried: on its development part."""
    task, shown = runs.task, [name for name in SHOWN if runs.of(name)]
    measures = [(key, name, test) for test in task.tests for key, name in task.measures.items()]
    rows, lines, still = [], [], []
    if trivial := runs.records.get("trivial"):
        scores = [spread([trivial["tests"][test][key]]) for key, _, test in measures]
        rows.append([f"trivial: {trivial['what']}", *scores, *[""] * 6])
    for name in shown:
        of_network = runs.of(name)
        scores = [spread(runs.values(name, key, test), with_range=not i) for i, (key, _, test) in enumerate(measures)]
        spans = []
        for key in ("minutes", "parameters", "words_per_second"):
            numbers = [run[key] for run in of_network]
            spans.append(" to ".join(dict.fromkeys(f"{end:,.0f}" for end in (min(numbers), max(numbers)))))
        cells = [*titles(name), *scores, "" if name == BASELINE else runs.cuts(name)[0], runs.numbers(name)]
        rows.append([*cells, *spans, ", ".join(sorted({run["commit"] for run in of_network}))])
    for test in task.tests:
        pairs = [(" / ".join(titles(a, b)), runs.values(a, test=test), runs.values(b, test=test)) for a, b in PAIRS]
        lines.append(apart_line(f"Differ in {runs.measure}{'' if test == 'test' else f', {test}'}", pairs))
    for name in (BASELINE, ELMO):
        curves = [[score for _, score in run["curve"]] for run in runs.of(name) if run.get("curve")]
        if last := sum(max(curve) == curve[-1] for curve in curves):
            still.append(f"{last} of the {len(curves)} runs of {NETWORKS[name].title} whose scores were kept")
    if still:
        lines.append(f"Longer training may help: the last evaluation was the best one in {' and '.join(still)}.")
    head = [name if test == "test" else f"{name}, {test}" for _, name, test in measures]
    head = ["network", *head, "error cut", "runs", "minutes", "parameters", "words/s", "commits"]
    command = f'python -m spacy project run task . --vars.task {task.name} --vars.networks "{" ".join(shown)}"'
    of_runs = facts([run for name in shown for run in runs.of(name)], "machine", "bilm")
    introduction = f"## {runs.title}\n\nData: {data}\n\n`{command}`; {of_runs}. Tried on the development part: {tried}"
    return f"{introduction}\n\n{table(head, rows, ' '.join([*lines, mixes_line(runs)]))}"


def mixes_line(runs: Runs) -> str:
    """Return what the mixes of [x; ELMo] learned, means over the runs."""
    elmo, learned = runs.of(ELMO), []
    for number, mix in enumerate(elmo[0]["mixes"] if elmo else ()):
        same = [run["mixes"][number] for run in elmo]
        weights = ", ".join(f"{mean(layer):.3f}" for layer in zip(*(one["weights"] for one in same)))
        learned.append(f"{mix['component']}, {mix['place']}: {weights}; gamma {mean(one['gamma'] for one in same):.3f}")
    return f"Mixes: {'. '.join(learned)}." if learned else ""


def read_paragraphs(runs: Runs) -> dict[str, Any]:
    """Return what the scores are in paragraphs that the biLM has read, and in the others."""
    record, key, found = runs.records["read"], next(iter(runs.task.measures)), []
    result = record["result"]
    for part, title in (("read", "of these paragraphs"), ("others", "of the others")):
        base, elmo = (mean(one[key] for one in result["scores"][name][part]) for name in (BASELINE, ELMO))
        scores = f"x alone {percent(base)}, [x; ELMo] {percent(elmo)}"
        cut = f"error cut {100 - 100 * (1 - elmo) / (1 - base):.1f} %"
        found.append(f"{result['questions'][part]} questions {title}: {scores}, {cut}")
    said = f"`{record['command']}`; {facts([record], 'commit', 'machine')}"
    n = len(result["runs"][ELMO])
    counted = "one run" if n == 1 else f"{n} runs"
    return {"read": result, "read_runs": counted, "read_scores": ". ".join(found), "read_source": said}


def alternatives(ner: Runs, embeddings: Mapping[str, Any], learning: Mapping[str, Any]) -> dict[str, str]:
    """Return what a user would take instead of the embedded biLM."""
    rows = []
    for name in filter(ner.of, ALTERNATIVES):
        trained = [(one["minutes"], one["words"]) for key, one in embeddings.items() if key == TRAINED.get(name)]
        gpu = 0.0
        for run in learning.values():
            if run["bilm"] == BILMS.get(name):
                cores = re.search(r"(\d+) cores?\b", run["machine"])
                trained.append((run["minutes"] * int(cores[1]) if cores else 0, run["evaluations"][-1][0]))
                gpu += 0 if cores else run["minutes"]
        minutes, words = (sum(column) for column in zip(*trained)) if trained else (0, 0)
        time = f"{minutes:,.0f}{f', and {gpu:.0f} of a GPU' if gpu else ''}" if minutes else ""
        # spacy pretrain changes the weights of x alone
        speed = ner.records.get(f"{BASELINE if name == PRETRAINED else name}/speed")
        row = [*titles(name), time, f"{words / 1e6:,.0f}" if words else ""]
        row += [spread(ner.values(name), with_range=True), "" if name == BASELINE else ner.cuts(name)[0]]
        rows.append([*row, f"{ner.of(name)[0]['megabytes']:.1f}", f"{speed['words_per_second']:,}" if speed else ""])
    runs = [run for name in (PRETRAINED, SHORT) for run in ner.of(name)]
    speeds = [record for name, record in ner.records.items() if name.endswith("/speed")]
    said = f"{facts(runs, 'commit', 'machine')}. Embeddings: {facts(embeddings.values(), 'commit')}."
    head = ["network", "minutes of training", "million words read", "test F1, %", "error cut", "MB on disk", "words/s"]
    pairs = [(" / ".join(titles(a, b)), ner.values(a), ner.values(b)) for a, b in INSTEAD]
    said += f" Words/s: {facts(speeds, 'commit')}."
    return {"alternatives_source": said, "alternatives": table(head, rows, apart_line("Differ in F1", pairs))}


def transformer(all_runs: Mapping[str, Runs]) -> dict[str, str]:
    """Return what a small transformer, and static vectors of a large one, reach in place of ELMo."""
    smallest = all_runs[next(iter(BESIDE))]
    rows, found = [], []
    for name in filter(smallest.of, TRANSFORMERS):
        cells = titles(name)
        for task in BESIDE:
            values = all_runs[task].values(name)
            cells.append(f"{spread(values)} ({len(values)})" if values else "")
        runs = smallest.of(name)
        found += [run for task in BESIDE for run in all_runs[task].of(name)]
        speed = smallest.records.get(f"{name}/speed", {}).get("words_per_second")
        cells += [
            f"{mean(run['minutes'] for run in runs):.0f}",
            f"{runs[0]['megabytes']:.0f}" if name != WORDLLAMA else "",
        ]
        rows.append([*cells, f"{speed:,}" if speed else ""])
    head = ["network", *BESIDE.values(), "minutes of training, a tenth of newswire", "MB on disk", "words/s"]
    if not any(smallest.of(name) for name in (FROZEN, MINILM)):
        raise LookupError("no transformer was trained")
    return {"transformer": table(head, rows), "transformer_source": facts(found, "commit", "machine")}


def paces(all_runs: Sequence[Runs]) -> dict[str, str]:
    found = [(runs.title, *pace) for runs in all_runs if (pace := runs.pace())]
    rows = [[title, f"{alone:,.0f}", f"{elmo:,.0f}", f"{every:,}", of] for title, alone, elmo, every, of in found]
    return {"paces": table(["task", "updates, x alone", "updates, [x; ELMo]", "evaluated every", "reached in"], rows)}


# BiLMs


def bilms(records: Mapping[str, Any]) -> dict[str, str]:
    """Return what was measured of the biLMs."""
    names = sorted({*BILMS.values()} & records.keys())
    results = [records[name]["result"] for name in names]
    rows = [["weights, first digits of the SHA-256", *(one["weights"] for one in results)]]
    rows.append(["parameters", *(f"{one['parameters']:,}" for one in results)])
    rows += [[f"{file}, MB", *(f"{one['bytes'][file] / 1e6:.1f}" for one in results)] for file in FILES]
    for text in ("wikipedia", "novels", "newswire", "tweets"):
        of_text = [one["perplexities"][text] for one in results]
        (size,) = {f"{one['sentences']:,} sentences, {one['tokens']:,} words" for one in of_text}
        title = "Wikipedia" if text == "wikipedia" else text
        rows.append([f"perplexity, {title}: {size}", *(f"{one['perplexity']:.1f}" for one in of_text)])
    for number, layer in enumerate((*LAYERS, "the mean of the layers")):
        rows.append([f"tags, {layer}", *(percent(one["tags"][number]) for one in results)])
    return {
        "bilms_source": source(*(records[name] for name in names)),
        "bilms": table(["", *(f"`{name}`" for name in names)], rows),
    }


def learned(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return how the biLMs learned."""
    rows = []
    for run in runs:
        tokens, perplexity = run["evaluations"][-1]
        row = [f"`{run['bilm']}`, {run['title']}", run["text"], f"{run['tokens_before'] / 1e6:,.0f}"]
        row += [f"{tokens / 1e6:,.0f}", f"{run['minutes']:,.0f}", f"{perplexity:.1f}"]
        rows.append([*row, "yes" if run["averaged"] else "no", run["machine"]])
    head = ["run", "text", "million tokens read before", "million tokens read in this run", "minutes"]
    return {"learning": table([*head, "perplexity at its end", "averaged", "machine"], rows)}


def latin(records: Mapping[str, Any]) -> dict[str, str]:
    """Return the scores on Latin treebanks, and the share of the errors of x alone that each network removes.

    Networks that were not trained on each of them are left out.
    """
    found: dict[str, dict[str, list[Mapping[str, float]]]] = {treebank: {} for treebank in TREEBANKS}
    for key, record in records.items():
        treebank, network, _ = key.split("/")
        found[treebank].setdefault(network, []).append(record["scores"])
    networks = [name for name in LATIN_NETWORKS if all(name in of for of in found.values())]
    alone, *others = networks
    head, rows = ["treebank", *networks, "runs of each"], []
    for treebank, of in found.items():
        cells = [", ".join(percent(*(run[key] for run in of[name])) for key in LATIN) for name in networks]
        rows.append([TREEBANKS[treebank], *cells, ", ".join(str(len(of[name])) for name in networks)])

    def cut(key: str, network: str) -> str:
        errors = [[1 - mean(run[key] for run in of[name]) for name in (network, alone)] for of in found.values()]
        return percent(*(1 - one / other for one, other in errors))

    cuts = [", ".join(cut(key, name) for key in LATIN) for name in others]
    rows.append(["errors of x alone that are gone, mean of the five", "", *cuts, ""])
    return {"latin": table(head, rows), "latin_source": facts(records.values(), "commit", "machine")}


def of_language(records: Mapping[str, Any], language: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return the runs of each network of a language."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for key, record in records.items():
        if key.startswith(f"{language}/") and "/seed-" in key:
            found.setdefault(key.split("/")[1], []).append(record)
    return found


def cut_shares(errors: Sequence[Mapping[str, float]], networks: Sequence[str], alone: str) -> list[str]:
    """Return the mean share of the errors of x alone that is gone, and the number of its languages."""
    shares = [[1 - one[name] / one[alone] for one in errors if name in one] for name in networks]
    return [f"{percent(*of)} ({len(of)})" if of else "" for of in shares]


def trees(records: Mapping[str, Any]) -> dict[str, str]:
    """Return texts, biLMs and scores of the languages with a treebank."""
    rows, errors, keys = [], [], ("morph_acc", "dep_las")
    for language in (one for one in LANGUAGES if f"{one}/text" in records):
        text, found = records[f"{language}/text"], of_language(records, language)
        scores = {name: {key: mean(run["scores"][key] for run in of) for key in keys} for name, of in found.items()}
        errors.append({name: 1 - score["dep_las"] for name, score in scores.items()})
        row = [LANGUAGES[language], f"{text['trees']:,}", f"{text['words'] / 1e6:.1f}"]
        row += [f"{text['bytes'] / text['words']:.1f}", f"{text['tokens'] / 1e6:.0f}", f"{text['minutes']:.0f}"]
        row += [", ".join(percent(scores[name][key]) for key in keys) if name in scores else "" for name in TREES]
        rows.append([*row, str(min(map(len, found.values())))])
    if not rows:
        raise LookupError("no language was measured")
    rows.append(["LAS errors of x alone that are gone", *[""] * 6, *cut_shares(errors, TREES[1:], TREES[0]), ""])
    head = ["language", "trees for training", "million words of text", "bytes a word", "million words read"]
    told = facts([one for key, one in records.items() if "/seed-" in key], "commit", "machine")
    return {"trees": table([*head, "minutes of the biLM", *TREES, "runs of each"], rows), "trees_source": told}


def entities(records: Mapping[str, Any]) -> dict[str, str]:
    """Return the scores of African languages, beside what is published of transformers."""
    with Path(__file__).parents[1].joinpath("languages", "published.tsv").open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file, delimiter="\t"))
    others = dict.fromkeys(row["network"] for row in published)
    runs = {language: found for language in LANGUAGES if (found := of_language(records, language))}
    if not runs:
        raise LookupError("no language was measured")
    networks = [name for name in ENTITIES if any(name in found for found in runs.values())]
    rows, errors = [], []
    for language, found in runs.items():
        scores = {name: [run["test"] for run in of] for name, of in found.items()}
        errors.append({name: 100 - mean(of) for name, of in scores.items()})
        cells = [f"{mean(scores[name]):.1f} ({len(scores[name])})" if name in scores else "" for name in networks]
        known = {row["network"]: f"{float(row['F1']):.1f}" for row in published if row["language"] == language}
        rows.append([LANGUAGES[language], *cells, *(known.get(name, "") for name in others)])
    alone, *more = networks
    rows.append(["errors of x that are gone", "", *cut_shares(errors, more, alone), *[""] * len(others)])
    every = {name: [run for found in runs.values() for run in found.get(name, ())] for name in networks}
    for title, key in (("MB on disk", "megabytes"), ("minutes of training", "minutes")):
        means = [f"{mean(run[key] for run in every[name]):.0f}" for name in networks]
        rows.append([title, *means, *[""] * len(others)])
    told = facts([run for of in every.values() for run in of], "commit", "machine")
    return {"entities": table(["language", *networks, *others], rows), "entities_source": told}


def inside(records: Mapping[str, Any]) -> dict[str, str]:
    rows = []
    for name, (title, key, paper) in PROBES.items():
        result = records[name]["result"]
        figures = [result["majority"][key], *(layer["trained"][key] for layer in result["layers"])]
        rows.append([title, *map(percent, figures), *paper])
        random = (percent(layer["random"][key]) for layer in result["layers"])
        rows.append(["the same, random weights", "", *random, "", ""])
    result = records["senses"]["result"]
    tests = [*result["tests"], {"test": "all", **result["all"]}]
    figures = [one["f1"] for one in (tests[-1]["first_sense"], *tests[-1]["layers"])]
    rows.append(["word senses, SemCor", *map(percent, figures), *PAPER_SENSES])
    senses = [["instances", *(f"{test['instances']:,}" for test in tests)]]
    senses.append(["of them lemmas that SemCor does not have", *(f"{test['not_in_training']:,}" for test in tests)])
    senses.append(["first sense of WordNet", *(percent(test["first_sense"]["f1"]) for test in tests)])
    for number, layer in enumerate((*LAYERS, "mean of the layers")):
        senses.append([layer, *(percent(test["layers"][number]["f1"]) for test in tests)])
    head = ["question", "without a layer", *LAYERS, "mean", "the paper's layer 1", "the paper's layer 2"]
    return {
        "inside_source": source(*(records[name] for name in (*PROBES, "senses"))),
        "inside": table(head, rows),
        "senses": table(["", *(Path(test["test"]).stem for test in tests)], senses),
    }


# Plots


def plot_summary(path: Path, all_runs: Sequence[Runs]) -> dict[str, str]:
    """Plot the error cuts of ELMo beside x alone, beside x with static vectors, and the paper's."""
    figure, axes = plt.subplots(figsize=(7.6, 1.3 + 0.5 * len(all_runs)), layout="constrained")
    bars = (("x alone", ELMO, BASELINE, -0.2, "tab:blue"), ("x with static vectors", BOTH, VECTORS, 0.2, "tab:orange"))
    for name, network, than, shift, color in bars:
        cuts = [(row + shift, 100 * runs.cut(network, than)) for row, runs in enumerate(all_runs) if runs.of(network)]
        if cuts:
            rows, widths = zip(*cuts)
            axes.barh(rows, widths, color=color, height=0.38, label=f"beside {name}")
        for y, width in cuts:
            axes.text(0.3, y, f"{width:.1f}", va="center", fontsize=8, color="white" if width > 3 else "black")
    papers = [(number, runs.task.paper[0]) for number, runs in enumerate(all_runs) if runs.task.paper]
    for number, (row, paper) in enumerate(papers):
        label = None if number else "the paper's biLM, beside static vectors"
        axes.plot([paper] * 2, [row - 0.45, row + 0.45], color="black", label=label)
    axes.set_yticks(range(len(all_runs)), [runs.title for runs in all_runs])
    axes.invert_yaxis()
    axes.set(xlabel="share of the errors that ELMo removes, %")
    figure.legend(loc="outside upper right", ncols=3, fontsize=8)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return {path.stem: f"]({path.name})"}


def plot_learning(path: Path, runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Plot perplexity over the tokens that a biLM has read in all its runs.

    A line for each run, a colour for each biLM. A dotted line leads from the end of a run to the next one.
    """
    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    colors = {bilm: f"C{number}" for number, bilm in enumerate(dict.fromkeys(run["bilm"] for run in runs))}
    before: dict[str, tuple[float, float]] = {}
    for run in runs:
        bilm, color = run["bilm"], colors[run["bilm"]]
        points = [((run["tokens_before"] + tokens) / 1e6, perplexity) for tokens, perplexity in run["evaluations"]]
        axes.plot(*zip(*points), ".-", color=color)
        if bilm in before:
            axes.plot(*zip(before[bilm], points[0]), ":", color=color)
        before[bilm] = points[-1]
        lowest = min(points, key=itemgetter(1))
        axes.annotate(run["title"], lowest, xytext=(0, -11), textcoords="offset points", ha="center", fontsize=8)
    for bilm, color in colors.items():
        axes.plot([], [], ".-", color=color, label=bilm)
    axes.set(xlabel="million tokens that the biLM has read", ylabel="perplexity, held-out Wikipedia", yscale="log")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=10))  # a logarithmic scale has too few marks between 50 and 150
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:.0f}")
    axes.margins(y=0.1)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return {path.stem: f"]({path.name})"}


def main(
    output: Annotated[Path, typer.Option(help="The page; plots are put beside it")] = Path("docs/results.md"),
    seeds: Seeds = "0 1 2",
) -> None:
    """Write the page of results and its plots."""
    all_runs = [Runs(task, read_results(task.name), seeds_of(seeds)) for task in TASKS]
    curve = [Runs(task, read_results(task.name), seeds_of(seeds)) for task in CURVE]
    learning = read_results("pretraining")
    in_order = sorted(learning.values(), key=lambda run: (run["bilm"], run["tokens_before"]))
    with Path(__file__).with_name("tasks.tsv").open(encoding="utf-8", newline="") as file:
        _, *said = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    sections = [of_task(runs, *about) for runs, (_, *about) in zip(all_runs, said) if any(map(runs.of, SHOWN))]
    parts: dict[str, Any] = {
        "mark": bilm_mark(),
        "tasks": "\n\n".join(sections),
    }
    for make in (
        partial(summary, all_runs),
        partial(all_tasks, all_runs),
        partial(read_paragraphs, next(runs for runs in all_runs if runs.task.name == "answers")),
        partial(alternatives, all_runs[0], read_results("embeddings"), learning),
        partial(transformer, {runs.task.name: runs for runs in (*all_runs, *curve)}),
        partial(paces, all_runs),
        partial(bilms, read_results("bilms")),
        partial(learned, in_order),
        partial(latin, read_results("latin")),
        partial(trees, read_results("languages_trees")),
        partial(entities, read_results("languages_entities")),
        partial(inside, read_results("inside")),
        partial(plot_summary, output.with_name("results_summary.png"), all_runs),
        partial(plot_learning, output.with_name("results_pretraining.png"), in_order),
    ):
        with suppress(LookupError, ValueError):  # not all of its runs were made
            parts |= make()
    paragraphs = Path(__file__).with_name("results.md").read_text(encoding="utf-8").split("\n\n")
    told = [one.format_map(parts) for one in paragraphs if set(re.findall(r"{(\w+)", one)) <= parts.keys()]
    output.write_text("\n\n".join(told), encoding="utf-8")
    print(f"wrote {output}")


if __name__ == "__main__":
    run_command(main)
