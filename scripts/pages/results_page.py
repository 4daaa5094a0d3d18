"""Write docs/results.md and its plots from the files in results/.

python -m scripts.pages.results_page --seeds "0 1 2"
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ..runs.experiments import (
    ABLATIONS,
    BASELINE,
    BOTH,
    CARRIED,
    CHANGES,
    ELMO,
    MIDI,
    NETWORKS,
    PRETRAINED,
    RANDOM,
    SHARES,
    SHORT,
    TASKS,
    TUNED,
    UPDATES,
    VECTORS,
    Seeds,
    Task,
    read_results,
    seeds_of,
    share_name,
)
from ..runs.train_runs import bilm_mark
from ..shared import run_command
from . import page_texts as texts
from .figures import (
    apart,
    apart_line,
    error_cut,
    mean_percent,
    percent,
    plot_learning,
    plot_summary,
    shown_cut,
    span,
    spread,
    student,
    table,
)

_SHOWN = (BASELINE, ELMO, RANDOM, VECTORS, BOTH, MIDI)  # in the sections of the tasks
_PAIRS = ((ELMO, BASELINE), (ELMO, RANDOM), (ELMO, VECTORS), (BOTH, VECTORS), (BOTH, ELMO), (MIDI, ELMO))
# by network: of which embedding, and of which biLM, the training is told
_TRAINED = {VECTORS: "floret", PRETRAINED: "spacy_pretrain", SHORT: "short_bilm", BOTH: "floret"}
_SOURCE = ("commit", "machine", "bilm")
_BILMS = {ELMO: "en_mini", BOTH: "en_mini", MIDI: "en_midi"}


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

    def values(self, network: str, key: str = "", test: str = "") -> list[float]:
        """Return a measure of each run; without names, the first measure on the first test file."""
        key, test = key or next(iter(self.task.measures)), test or next(iter(self.task.tests))
        return [run["tests"][test][key] for run in self.of(network)]

    def dev(self, network: str) -> list[float]:
        """Return the first measure of each run on the development part."""
        key = next(iter(self.task.measures))
        return [run["dev"][key] for run in self.of(network) if key in run["dev"]]

    def cut(self, network: str = ELMO, than: str = BASELINE) -> float | None:
        """Return how much smaller a network's error is than another's; None without runs of both."""
        return error_cut(self.values(than), self.values(network))


def _pairs(runs: Runs, pairs: Iterable[tuple[str, str]], test: str = "") -> list[tuple[str, list[float], list[float]]]:
    """Return the first measure of pairs of networks, with their names."""
    return [(" / ".join(_titles(a, b)), runs.values(a, test=test), runs.values(b, test=test)) for a, b in pairs]


def _titles(*networks: str) -> list[str]:
    return [NETWORKS[name].title for name in networks]


def _facts(records: Iterable[Mapping[str, Any]], *names: str) -> str:
    """Return the different values of facts of records, as text."""
    found = {name: sorted({str(one[name]) for one in records if one.get(name)}) for name in names}
    marks = {"commit": "commit ", "bilm": "`en_mini` "}
    return "; ".join(marks.get(name, "") + ", ".join(values) for name, values in found.items() if values)


def _ends(figures: Mapping[str, float], shown: Callable[[float], str]) -> str:
    """Return the least and the largest one of the tasks' figures, with their tasks."""
    ends = [choose(figures, key=lambda title: figures[title]) for choose in (min, max)]
    return " to ".join(dict.fromkeys(f"{shown(figures[title])} ({title})" for title in ends))


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _difference(cut: float) -> str:
    more = "fewer" if cut > 0 else "more"
    return f"{100 * abs(cut):.0f} % {more} errors" if round(100 * cut) else "as many errors"


def _cuts(all_runs: Sequence[Runs], network: str, than: str = BASELINE) -> dict[str, float]:
    return {runs.title: cut for runs in all_runs if (cut := runs.cut(network, than)) is not None}


def summary_lines(all_runs: Sequence[Runs], ablations: Sequence[Runs]) -> list[str]:
    """Return what the runs say in the main, a line each; what was not run is left out."""

    def mean(cuts: Mapping[str, float]) -> str:
        return _share(statistics.mean(cuts.values()))

    lines, elmo = [], _cuts(all_runs, ELMO)
    if elmo:
        lines.append(f"ELMo removes {mean(elmo)} of the errors on average, from {_ends(elmo, _share)}.")
    if vectors := _cuts(all_runs, VECTORS):
        line = f"Static vectors (floret) of Wikipedia, in x, remove {mean(vectors)} of the errors."
        if ahead := [title for title, cut in vectors.items() if cut > elmo.get(title, math.inf)]:
            line += f" They have the higher mean on {'; '.join(ahead)}."
        if added := _cuts(all_runs, BOTH, VECTORS):
            line += f" ELMo removes {mean(added)} of the errors that they leave, from {_ends(added, _share)}."
        lines.append(line + " The paper's x had static vectors too.")
    if random := _cuts(all_runs, RANDOM):
        average, ends = _difference(statistics.mean(random.values())), _ends(random, _difference)
        line = f"Control: compared with x alone, a biLM of random weights leaves {average} on average, from {ends}."
        lines.append(line)
    if paces := [pace[1] / pace[0] for runs in all_runs if (pace := pace_of(runs)) and pace[1]]:
        ends = f"{_share(min(paces))} to {_share(max(paces))}"
        line = f"[x; ELMo] reaches the best score of x alone in {ends} of its updates ([how soon](#how-soon))."
        lines.append(line + _least_shares(all_runs, ablations))
    speeds = {}
    for runs in all_runs:
        of_elmo, alone = (runs.records.get(f"{network}/speed") for network in (ELMO, BASELINE))
        if of_elmo and alone:
            speeds[runs.title] = of_elmo["words_per_second"] / alone["words_per_second"]
    if speeds:
        ends = _ends(speeds, _share)
        lines.append(f"Speed of [x; ELMo], as a share of that of x alone: {ends}; two threads, without caches.")
    return lines


def _least_shares(all_runs: Sequence[Runs], ablations: Sequence[Runs]) -> str:
    """Return with which shares of the training part [x; ELMo] is as good as x alone with all of it."""
    found = []
    for runs in ablations:
        alone = [value for other in all_runs if other.title == runs.title for value in other.dev(BASELINE)]
        for share in (*SHARES, 100):
            values = runs.values(share_name(ELMO, share))
            if alone and values and values[0] >= statistics.mean(alone):
                found.append(
                    f"with {share} % of that of {runs.title}, [x; ELMo] has {percent(values[0])}, and x alone with all "
                    f"of it {mean_percent(alone)}"
                )
                break
    if not found:
        return ""
    earlier = any(run["bilm"] != bilm_mark() for runs in ablations for run in runs.of(ELMO))
    weights = ", with earlier weights of `en_mini`" if earlier else ""
    return f" It needs less of the training part, too: {'; '.join(found)} (the development part; one run{weights})."


def all_tasks(all_runs: Sequence[Runs]) -> list[str]:
    rows, bilms, columns = [], [], (BASELINE, VECTORS, ELMO, BOTH)
    for runs in all_runs:
        if runs.of(BASELINE) and runs.of(ELMO):
            verdict = {True: "yes", False: "no", None: ""}[apart(runs.values(BASELINE), runs.values(ELMO))]
            cuts = [shown_cut(runs.cut(*pair)) for pair in ((ELMO,), (VECTORS,), (BOTH,), (BOTH, VECTORS))]
            paper = f"{runs.task.paper[0]:.1f} %, {runs.task.paper[1]}" if runs.task.paper else ""
            means = [mean_percent(runs.values(name)) for name in columns]
            n_runs = ", ".join(str(len(runs.of(name))) for name in columns)
            rows.append([runs.title, runs.measure, *means, cuts[0], verdict, *cuts[1:], paper, n_runs])
        if runs.of(MIDI):
            names = (BASELINE, ELMO, MIDI)
            cuts = [shown_cut(runs.cut(name)) for name in names[1:]]
            n_runs = ", ".join(str(len(runs.of(name))) for name in names)
            bilms.append([runs.title, *(mean_percent(runs.values(name)) for name in names), *cuts, n_runs])
    if not rows:
        return []
    head = ["task", "measure", *_titles(*columns), "cut: ELMo", "beyond seeds", "cut: vectors", "cut: both"]
    head += ["cut of ELMo beside vectors", "the paper's", "runs of each"]
    pairs = [(runs.title, runs.values(ELMO), runs.values(VECTORS)) for runs in all_runs]
    parts = ["## All tasks", texts.SUMMARY, table(head, rows)]
    parts.append(apart_line("Do [x; ELMo] and x with static vectors differ", pairs))
    if bilms:
        head = ["task", *_titles(BASELINE, ELMO, MIDI), "cut: en_mini", "cut: en_midi", "runs of each"]
        pairs = [(runs.title, runs.values(MIDI), runs.values(ELMO)) for runs in all_runs]
        parts += [texts.OF_BILMS, table(head, bilms), apart_line("Do the two with ELMo differ", pairs)]
    return parts


def task_part(runs: Runs) -> list[str]:
    task, shown = runs.task, [name for name in _SHOWN if runs.of(name)]
    if not shown:
        return []
    every = [run for name in shown for run in runs.of(name)]
    command = f'python -m spacy project run task . --vars.task {task.name} --vars.networks "{" ".join(shown)}"'
    measures = [(key, name, test) for test in task.tests for key, name in task.measures.items()]
    head = [name if test == "test" else f"{name}, {test}" for _, name, test in measures]
    head = ["network", *head, "error cut", "runs", "minutes", "parameters", "MB", "words/s", "commits"]
    rows = []
    if trivial := runs.records.get("trivial"):
        scores = [spread([trivial["tests"][test][key]]) for key, _, test in measures]
        rows.append([f"trivial: {trivial['what']}", *scores, *[""] * 7])
    for name in shown:
        of_network = runs.of(name)
        scores = [spread(runs.values(name, key, test), with_range=not i) for i, (key, _, test) in enumerate(measures)]
        cut = "" if name == BASELINE else shown_cut(runs.cut(name))
        facts = [span([run[key] for run in of_network]) for key in ("minutes", "parameters")]
        facts += [f"{of_network[0]['megabytes']:.1f}", span([run["words_per_second"] for run in of_network])]
        commits = ", ".join(sorted({run["commit"] for run in of_network}))
        rows.append([*_titles(name), *scores, cut, str(len(of_network)), *facts, commits])
    parts = [f"## {task.title}", f"Data: {texts.DATA[task.name]}"]
    tried = f"Tried on the development part: {texts.TRIED[task.name]}"
    parts += [f"`{command}`; {_facts(every, 'machine', 'bilm')}. {tried}", table(head, rows)]
    lines = []
    for test in task.tests:
        shown_test = "" if test == "test" else f", {test}"
        lines.append(apart_line(f"Differ in {runs.measure}{shown_test}", _pairs(runs, _PAIRS, test)))
    if still := [line for name in (BASELINE, ELMO) if (line := _still_rising(runs, name))]:
        lines.append(f"At the last evaluation, {' and '.join(still)} had their best score.")
    parts.append(" ".join([*lines, mixes_line(runs)]))
    return [*parts, read_line(runs)] if "read" in runs.records else parts


def _still_rising(runs: Runs, network: str) -> str:
    curves = [[score for _, score in run["curve"]] for run in runs.of(network) if run.get("curve")]
    last = sum(max(curve) == curve[-1] for curve in curves)
    return f"{last} of {len(curves)} runs of {NETWORKS[network].title}" if last else ""


def mixes_line(runs: Runs) -> str:
    """Return what the mixes of [x; ELMo] learned, means over the runs."""
    elmo, learned = runs.of(ELMO), []
    for number, mix in enumerate(elmo[0]["mixes"] if elmo else ()):
        same = [run["mixes"][number] for run in elmo]
        weights = ", ".join(f"{statistics.mean(layer):.3f}" for layer in zip(*(one["weights"] for one in same)))
        gamma = statistics.mean(one["gamma"] for one in same)
        learned.append(f"{mix['component']}, {mix['place']}: {weights}; gamma {gamma:.3f}")
    return f"Mixes: {'. '.join(learned)}." if learned else ""


def read_line(runs: Runs) -> str:
    """Return what the scores are in paragraphs that `en_mini` has read, and in the others."""
    record, key = runs.records["read"], next(iter(runs.task.measures))
    result, found = record["result"], []
    for part, title in (("read", "of these paragraphs"), ("others", "of the others")):
        values = [[one[key] for one in result["scores"][name][part]] for name in (BASELINE, ELMO)]
        base, elmo = map(mean_percent, values)
        cut = shown_cut(error_cut(*values))
        questions = f"{result['questions'][part]} questions {title}"
        found.append(f"{questions}: x alone {base}, [x; ELMo] {elmo}, error cut {cut}")
    source = f"`{record['command']}`; {_facts([record], 'commit', 'machine')}"
    return texts.READ.format(**result, found=". ".join(found), source=source)


def alternatives_part(ner: Runs, embeddings: Mapping[str, Any], learning: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs on what a user would take instead of the embedded biLM."""
    networks = [name for name in (BASELINE, VECTORS, PRETRAINED, SHORT, ELMO, BOTH, MIDI) if ner.of(name)]
    if not {PRETRAINED, SHORT} & set(networks):
        return []
    rows = []
    for name in networks:
        trained = [(one["minutes"], one["words"]) for key, one in embeddings.items() if key == _TRAINED.get(name)]
        for run in learning.values():
            if run["bilm"] == _BILMS.get(name):
                cores = re.search(r"(\d+) cores?\b", run["machine"])  # none on a GPU
                trained.append((run["minutes"] * int(cores[1]) if cores else 0, run["evaluations"][-1][0]))
        minutes, words = (sum(column) for column in zip(*trained)) if trained else (0, 0)
        # spacy pretrain changes the weights of x alone
        speed = ner.records.get(f"{BASELINE if name == PRETRAINED else name}/speed")
        cut = "" if name == BASELINE else shown_cut(ner.cut(name))
        row = [*_titles(name), f"{minutes:,.0f}" if minutes else "", f"{words / 1e6:,.0f}" if words else ""]
        row += [spread(ner.values(name), with_range=True), cut, f"{ner.of(name)[0]['megabytes']:.1f}"]
        rows.append([*row, f"{speed['words_per_second']:,}" if speed else ""])
    runs = [run for name in (PRETRAINED, SHORT) for run in ner.of(name)]
    speeds = [record for name, record in ner.records.items() if name.endswith("/speed")]
    source = [f"`python -m spacy project run alternatives . --vars.text FILE`; {_facts(runs, 'commit', 'machine')}."]
    source += [f"Embeddings: {_facts(embeddings.values(), 'commit')}. Words/s: {_facts(speeds, 'commit')}."]
    pairs = [(BOTH, MIDI), (VECTORS, ELMO), (VECTORS, SHORT)]
    head = ["network", "minutes of training", "million words read", "test F1, %", "error cut", "MB on disk", "words/s"]
    parts = ["## What you would take instead", " ".join(source), texts.ALTERNATIVES, table(head, rows)]
    return [*parts, apart_line("Differ in F1", _pairs(ner, pairs))]


def tuned_part(all_runs: Sequence[Runs], tuned: Mapping[str, Any]) -> list[str]:
    if not tuned:
        return []
    rows, scores, pairs = [], [], []
    for runs in all_runs:
        if measured := tuned.get(runs.task.name):
            sides = [measured[side] for side in ("before", "after")]
            figures = [side["forward"] for side in sides] + [side["without_unknown"]["forward"] for side in sides]
            row = [runs.title, f"{measured['tokens'] / 1e6:.2f}", f"{measured['minutes']:.1f}"]
            rows.append([*row, *(f"{figure:.1f}" for figure in figures), texts.PAPER_TUNED.get(runs.task.name, "")])
        if runs.of(TUNED):
            names = (BASELINE, ELMO, TUNED)
            row = [runs.title, runs.measure, *(mean_percent(runs.values(n)) for n in names)]
            row += [shown_cut(runs.cut(name)) for name in names[1:]] + [mean_percent(runs.dev(n)) for n in names[1:]]
            scores.append([*row, ", ".join(str(len(runs.of(name))) for name in names)])
            pairs.append((runs.title, runs.values(ELMO), runs.values(TUNED)))
    source = f"`python -m spacy project run tuned .`; {_facts(tuned.values(), 'commit', 'machine', 'bilm')}."
    head = ["text", "million tokens read", "minutes", "perplexity before", "after", "of known words, before", "after"]
    parts = ["## The biLM tuned on a task's text", source, texts.TUNED, table([*head, "the paper's"], rows)]
    if scores:
        head = ["task", "measure", *_titles(BASELINE, ELMO, TUNED), "cut: ELMo", "cut: tuned"]
        head += ["development part, [x; ELMo]", "development part, [x; tuned]", "runs of each"]
        parts += [texts.TUNED_SCORES, table(head, scores), apart_line("Do the two differ on the test part", pairs)]
    return parts


def pace_of(runs: Runs) -> tuple[float, float | None, int, str] | None:
    """Return how soon the two main networks learn, None without runs that recorded it.

    Updates until x alone has its best score on the development part, and until [x; ELMo] has it, as means over the runs
    in which it did (None: in none); updates between evaluations; and in how many runs of how many.
    """
    elmo = {seed: run["curve"] for seed, run in zip(runs.seeds, runs.of(ELMO)) if run.get("curve")}
    both = [(run["curve"], elmo[s]) for s, run in zip(runs.seeds, runs.of(BASELINE)) if run.get("curve") and s in elmo]
    pairs, bests = [], []
    for alone, curve in both:
        updates, best = max(alone, key=lambda point: float(point[1]))  # the first one of the best
        bests.append(updates)
        soon = next((step for step, score in curve if score >= best), None)
        pairs += [] if soon is None else [(updates, soon)]
    if not any(bests):
        return None
    every = min(later[0] - earlier[0] for alone, _ in both for earlier, later in pairwise(alone))
    reached = f"{len(pairs)} of {len(both)}"
    if not pairs:
        return statistics.mean(bests), None, every, reached
    return statistics.mean(one for one, _ in pairs), statistics.mean(soon for _, soon in pairs), every, reached


def pace_part(all_runs: Sequence[Runs]) -> list[str]:
    """Return the paragraphs on how many updates x alone needs for its best score, and ELMo for the same one."""
    rows = []
    for runs in all_runs:
        if pace := pace_of(runs):
            alone, elmo, every, reached = pace
            soon = "never" if elmo is None else f"{elmo:,.0f}"
            rows.append([runs.title, f"{alone:,.0f}", soon, f"{every:,}", reached])
    head = ["task", "updates, x alone", "updates, [x; ELMo]", "evaluated every", "reached in"]
    return ["## How soon", texts.PACES, table(head, rows)] if rows else []


def ablations_part(ablations: Sequence[Runs], all_runs: Sequence[Runs]) -> list[str]:
    """Return the paragraphs on single changes, and on shares of the training part."""
    measured = [runs for runs in ablations if runs.of(ELMO)]
    if not measured:
        return []
    titles = {name: network.title for runs in measured for name, network in runs.task.networks.items()}
    rows, head, lines = [], ["network"], []
    for name in (BASELINE, ELMO, *CHANGES, CARRIED):
        cells = []
        for runs in measured:
            if of_network := runs.of(name):
                points = round(100 * (statistics.mean(runs.values(name)) - statistics.mean(runs.values(ELMO))), 1)
                minutes = min(run["minutes"] for run in of_network)
                difference = "" if name == ELMO else f"{points + 0.0:+.1f}"  # no "-0.0"
                cells += [mean_percent(runs.values(name)), difference, f"{minutes:.0f}"]
            else:
                cells += [""] * 3
        rows.append([titles[name], *cells])
    for runs in measured:
        head += [f"{runs.title}: {runs.measure}", "difference", "minutes"]
        facts = _facts([run for name in (BASELINE, ELMO, *CHANGES, CARRIED) for run in runs.of(name)], *_SOURCE)
        lines.append(f"- {runs.title}: {facts}. {_doubt(runs)}")
    introduction = texts.ABLATIONS.format(updates=f"{UPDATES:,}")
    parts = ["## One change at a time", introduction + "\n" + "\n".join(lines), table(head, rows)]
    parts.append(texts.SHARES)
    with_shares = [runs for runs in measured if runs.of(share_name(ELMO, SHARES[0]))]
    pairs = [(runs, name) for runs in with_shares for name in (BASELINE, ELMO)]
    rows = [
        [f"{share} %", *(mean_percent(runs.values(share_name(name, share))) for runs, name in pairs)]
        for share in (*SHARES, 100)
    ]
    whole = {runs.title: runs for runs in all_runs}
    rows.append(["100 %, to the end", *(mean_percent(whole[runs.title].dev(name)) for runs, name in pairs)])
    head = ["training part", *(f"{runs.title}: {NETWORKS[name].title}" for runs, name in pairs)]
    return [*parts, table(head, rows)] if with_shares else parts[:-1]


def _doubt(runs: Runs) -> str:
    """Return which networks differ from [x; ELMo] by more than seeds make likely, if all deviate as it does."""
    values = runs.values(ELMO)
    if len(values) < 2:
        return "One run of each: how much another seed changes a score was not measured."
    deviation = statistics.stdev(values)
    least, of_two = (100 * student(len(values) - 1) * deviation * math.sqrt(1 + 1 / n) for n in (len(values), 1))
    far = [
        runs.task.networks[name].title
        for name in (BASELINE, *CHANGES)
        if runs.of(name) and 100 * abs(statistics.mean(runs.values(name)) - statistics.mean(values)) >= least
    ]
    return (
        f"The {len(values)} runs of [x; ELMo] have a deviation of {100 * deviation:.2f}; that of the other networks is "
        f"taken to be the same. Then another seed alone makes one run differ from their mean by {least:.1f} or more in "
        f"one of twenty cases, and two single runs by {of_two:.1f}. These differ by more: {'; '.join(far) or 'none'}."
    )


def bilms_part(records: Mapping[str, Any]) -> list[str]:
    parts = []
    measured = {name: one for name, one in records.items() if name != "bits"}
    if measured:
        named = dict(sorted(measured.items(), reverse=True))  # en_mini first
        results = [one["result"] for one in named.values()]
        rows = [["weights, first digits of the SHA-256", *(one["weights"] for one in results)]]
        rows.append(["parameters", *(f"{one['parameters']:,}" for one in results)])
        rows += [[f"{file}, MB", *(f"{one['bytes'][file] / 1e6:.1f}" for one in results)] for file in texts.FILES]
        for name, title in texts.TEXTS.items():
            of_text = [one["perplexities"][name] for one in results]
            (size,) = {f"{one['sentences']:,} sentences, {one['tokens']:,} words" for one in of_text}
            rows.append([f"perplexity, {title}: {size}", *(f"{one['perplexity']:.1f}" for one in of_text)])
        for number, layer in enumerate(("layer 0", "layer 1", "layer 2", "the mean of the layers")):
            rows.append([f"tags, {layer}", *(percent(one["tags"][number]) for one in results)])
        command = "`python -m spacy project run bilms . --vars.wikipedia FILE --vars.novels FILE`"
        head = ["", *(f"`{name}`" for name in named)]
        parts += [f"{command}; {_source(named.values())}", texts.BILMS, table(head, rows)]
    if bits := records.get("bits"):
        rows = []
        for one in ({"setting": "", "layer_changes": [], **bits["result"]}, *bits["result"]["copies"]):
            changes = [f"{100 * change:.2g} %" for change in one["layer_changes"]] or [""] * 3
            sizes = [f"{one['bytes'][file] / 1e6:.1f}" for file in texts.FILES]
            tags = ", ".join(map(percent, one["tags"]))
            setting = f"`{one['setting']}`" if one["setting"] else "as it was trained"
            rows.append([setting, *sizes, *changes, f"{one['perplexity']:.1f}", tags])
        head = ["", *(f"{file}, MB" for file in texts.FILES), *(f"change of layer {n}" for n in range(3))]
        source = f"`python -m spacy project run bits . --vars.model FOLDER --vars.wikipedia FILE`; {_source([bits])}"
        head += ["perplexity", "tags: layers 0, 1 ..., their mean"]
        parts += ["### Fewer bits", f"{source}", texts.BITS, table(head, rows)]
    return ["## The biLMs", *parts] if parts else []


def _source(records: Iterable[Mapping[str, Any]]) -> str:
    listed = list(records)
    minutes = sum(record["minutes"] for record in listed)
    facts = _facts(listed, "commit", "machine", "bilm")
    return f"{facts}; {minutes:.0f} minutes in all, while the machine did other work."


def learning_part(learning: Mapping[str, Any], output: Path) -> list[str]:
    """Return the paragraphs on how the biLMs learned, and draw their plot beside the output."""
    rows, runs = [], sorted(learning.values(), key=lambda run: (run["bilm"] != "en_mini", run["tokens_before"]))
    for run in runs:
        tokens, perplexity = run["evaluations"][-1]
        figures = [f"{run['tokens_before'] / 1e6:,.0f}", f"{tokens / 1e6:,.0f}", f"{run['minutes']:,.0f}"]
        averaged = "yes" if run["averaged"] else "no"
        name = f"`{run['bilm']}`, {run['title']}"
        rows.append([name, run["text"], *figures, f"{perplexity:.1f}", averaged, run["machine"]])
    if not rows:
        return []
    plot_learning(plot := output.with_name(f"{output.stem}_pretraining.png"), runs)
    head = ["run", "text", "million tokens read before", "million tokens read in this run", "minutes"]
    head += ["perplexity at its end", "averaged", "machine"]
    picture = f"![perplexity against tokens]({plot.name})"
    return ["## How the biLMs learned", texts.LEARNING, table(head, rows), picture]


def inside_part(records: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, (title, key, paper) in texts.PROBES.items():
        if name in records:
            result = records[name]["result"]
            figures = [result["majority"][key], *(layer["trained"][key] for layer in result["layers"])]
            rows.append([title, *map(percent, figures), *paper])
            random = (percent(layer["random"][key]) for layer in result["layers"])
            rows.append(["the same, random weights", "", *random, "", ""])
    parts = []
    if "senses" in records:
        result = records["senses"]["result"]
        tests = [*result["tests"], {"test": "all", **result["all"]}]
        figures = [one["f1"] for one in (tests[-1]["first_sense"], *tests[-1]["layers"])]
        rows.append(["word senses, SemCor", *map(percent, figures), *texts.PAPER_SENSES])
        senses = [["instances", *(f"{test['instances']:,}" for test in tests)]]
        senses.append(["of them lemmas that SemCor does not have", *(f"{test['not_in_training']:,}" for test in tests)])
        senses.append(["first sense of WordNet", *(percent(test["first_sense"]["f1"]) for test in tests)])
        for number, layer in enumerate(("layer 0", "layer 1", "layer 2", "mean of the layers")):
            senses.append([layer, *(percent(test["layers"][number]["f1"]) for test in tests)])
        parts += ["Word senses, F1 in %:", table(["", *(Path(test["test"]).stem for test in tests)], senses)]
    if rows:
        head = ["question", "without a layer", *texts.LAYERS, "the paper's layer 1", "the paper's layer 2"]
        source = f"`python -m spacy project run inside .`; {_source(records.values())}"
        parts = ["## Inside the biLM", source, texts.INSIDE, table(head, rows), *parts]
    return parts


def main(
    output: Annotated[Path, typer.Option(help="The page; plots are put beside it")] = Path("docs/results.md"),
    seeds: Seeds = "0 1 2",
) -> None:
    """Write the page of results and its plots."""
    all_runs, ablations = (
        [Runs(task, read_results(task.name), seeds_of(seeds)) for task in tasks] for tasks in (TASKS, ABLATIONS)
    )
    learning = read_results("pretraining")
    parts = [*all_tasks(all_runs), texts.READING.format(mark=bilm_mark())]
    for runs in all_runs:
        parts += task_part(runs)
    parts += alternatives_part(all_runs[0], read_results("embeddings"), learning)
    parts += tuned_part(all_runs, read_results("tuned")) + pace_part(all_runs)
    parts += ablations_part(ablations, all_runs) + bilms_part(read_results("bilms"))
    parts += learning_part(learning, output) + inside_part(read_results("inside"))
    parts += [texts.ELSEWHERE]
    cuts = [(one.title, one.cut(), one.cut(BOTH, VECTORS), one.task.paper and one.task.paper[0]) for one in all_runs]
    plot_summary(plot := output.with_name(f"{output.stem}_summary.png"), [row for row in cuts if row[1] is not None])
    summary = "\n".join(f"- {line}" for line in summary_lines(all_runs, ablations))
    picture = f"![share of the errors that ELMo removes]({plot.name})"
    page = "\n\n".join([texts.INTRODUCTION, picture, summary, *parts])
    output.write_text(page + "\n", encoding="utf-8")
    print(f"wrote {output}")


if __name__ == "__main__":
    run_command(main)
