"""What the four components have in common with spaCy's own: files, processes, seeds, beginning anew, listeners."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import answers_cases
import catalogue
import coreference_cases
import entailment_cases
import numpy as np
import pytest
import role_cases
import spacy
from pipelines import files
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from spacy.util import fix_random_seed
from tasks import PLAIN, elmo_block

from spacy_elmo.errors import AnnotationError, LostAnnotationsWarning, SettingsError

SIZES: dict[str, dict[str, Any]] = {
    "answers": {"lstm_width": 16},
    "entailment": {"lstm_width": 8},
    "semantic_roles": {"lstm_width": 12, "depth": 1},
    "coreference": {**coreference_cases.SMALL, "train_tokens": 6},
}
EXAMPLES = {
    "answers": answers_cases.gold,
    "entailment": entailment_cases.examples,
    "semantic_roles": role_cases.examples,
    "coreference": coreference_cases.examples,
}
TASKS = pytest.mark.parametrize("name", SIZES)


def blank(name: str, tok2vec: Any = PLAIN) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe(name, config={"model": {**SIZES[name], "tok2vec": tok2vec}})
    return nlp


def train(nlp: Language, name: str, steps: int, drop: float = 0.0) -> dict[str, float]:
    examples = EXAMPLES[name](nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    losses: dict[str, float] = {}
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer, drop=drop, losses=losses)
    return losses


@cache
def trained(name: str) -> Language:
    fix_random_seed(0)
    nlp = blank(name)
    train(nlp, name, 15)
    return nlp


def saved(nlp: Language, name: str) -> bytes:
    return nlp.get_pipe(name).to_bytes(exclude=["vocab"])  # type: ignore[attr-defined, no-any-return]


def results(nlp: Language, name: str, **settings: Any) -> tuple[list[Any], list[float]]:
    """All spans, and all scores, of the docs that it learned, as spaCy's files keep them."""
    processed = nlp.pipe([example.predicted for example in EXAMPLES[name](nlp)], **settings)
    docs = [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in processed]
    groups = [(number, key, group) for number, doc in enumerate(docs) for key, group in doc.spans.items()]
    spans = [
        (*place, sorted(group.attrs), [(span.start, span.end, span.label_) for span in group])
        for *place, group in groups
    ]
    cats = [score for doc in docs for score in doc.cats.values()]
    return spans, cats + [score for *_, group in groups for score in group.attrs.get("scores", ())]


@pytest.mark.parametrize(
    "name", [name if name == "semantic_roles" else pytest.param(name, marks=pytest.mark.slow) for name in SIZES]
)
def test_saved_it_gives_the_same(name: str, tmp_path: Path) -> None:
    nlp = trained(name)
    nlp.to_disk(tmp_path)
    expected = results(nlp, name)
    assert len(expected[0]) >= 3
    for other in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), blank(name).from_bytes(nlp.to_bytes())):
        assert results(other, name) == expected
        assert saved(other, name) == saved(nlp, name)
    assert not list(tmp_path.rglob("*.pkl"))


@pytest.mark.slow
@TASKS
def test_processes_give_the_same(name: str) -> None:
    expected = results(trained(name), name)
    for processes in (1, 2):
        spans, scores = results(trained(name), name, n_process=processes, batch_size=2)
        assert spans == expected[0]
        np.testing.assert_allclose(scores, expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@TASKS
def test_threads_give_the_same(name: str) -> None:
    """Also while another pipeline is trained, whose dropout would be seen."""
    nlp, stop = trained(name), threading.Event()
    other, gold = blank(name), EXAMPLES[name](nlp)
    optimizer = other.initialize(lambda: EXAMPLES[name](other))

    def train_on() -> int:
        for step in range(10_000):
            if stop.is_set():
                return step
            other.update(EXAMPLES[name](other), sgd=optimizer, drop=0.5)
        return 0

    expected = [results(nlp, name, batch_size=size) for size in (1, len(gold))]
    with ThreadPoolExecutor(5) as pool:
        training = pool.submit(train_on)
        sizes = [number % 2 for number in range(16)]
        found = list(pool.map(lambda size: results(nlp, name, batch_size=(1, len(gold))[size]), sizes))
        stop.set()
        assert training.result()
    for size, (spans, scores) in zip(sizes, found):
        assert spans == expected[size][0]
        np.testing.assert_array_equal(scores, expected[size][1])


@pytest.mark.slow
@TASKS
def test_the_same_seed_gives_the_same(name: str) -> None:
    fix_random_seed(3)
    nlp = blank(name)
    train(nlp, name, 3, drop=0.2)
    first = saved(nlp, name)
    for other in (blank(name), nlp):  # one that was initialised before begins anew
        fix_random_seed(3)
        train(other, name, 3, drop=0.2)
        assert saved(other, name) == first
    fix_random_seed(4)
    train(nlp, name, 3, drop=0.2)
    assert saved(nlp, name) != first


@pytest.mark.parametrize(
    ("name", "settings", "model", "message"),
    [
        ("answers", {"n_best": 0}, {}, "n_best is 0. Expected a whole number, 1 or more"),
        ("answers", {"longest_answer": 0}, {}, "longest_answer is 0"),
        ("answers", {}, {"longest_window": 0, "window_overlap": 0}, "longest_window is 0"),
        ("answers", {}, {"window_overlap": 400}, "longest_window is 400 and window_overlap is 400"),
        ("answers", {}, {"window_overlap": "100"}, r"window_overlap is '100'\. Expected whole numbers"),
        ("entailment", {}, {"lstm_width": -1}, "lstm_width is -1"),
        ("entailment", {}, {"longest": "2"}, "longest is '2'"),
        ("entailment", {}, {"nO": 0}, "nO is 0"),
        ("semantic_roles", {"threshold": 1.5}, {}, "threshold is 1.5"),
        ("semantic_roles", {"threshold": "0.5"}, {}, "threshold is '0.5'. Expected a number from 0 to 1"),
        ("semantic_roles", {"reach": -1}, {}, "reach is -1"),
        ("semantic_roles", {}, {"depth": 0}, "depth is 0"),
        ("coreference", {}, {"antecedents": 0}, "antecedents is 0"),
        ("coreference", {}, {"mentions_per_token": 1.5}, "mentions_per_token is 1.5"),
        ("coreference", {}, {"mentions_per_token": "0.2"}, "mentions_per_token is '0.2'"),
        ("coreference", {"prefix": "a b"}, {}, "prefix is 'a b'"),
        ("coreference", {"prefix": "get"}, {}, "prefix is 'get'. Expected a Python identifier that neither Python"),
        ("coreference", {"prefix": "class"}, {}, "prefix is 'class'"),
    ],
)
def test_settings_that_can_not_be_used(name: str, settings: Any, model: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacy.blank("xx").add_pipe(name, config={"model": {"tok2vec": PLAIN} | model} | settings)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answers", "a question, a context and right answers"),
        ("entailment", "cats, with 1.0"),
        ("semantic_roles", "roles: "),
        ("coreference", "span groups coref_clusters_1"),
    ],
)
def test_before_it_is_initialised(name: str, expected: str) -> None:
    nlp = blank(name)
    docs = [example.predicted for example in EXAMPLES[name](nlp)]
    with pytest.raises(AnnotationError, match=rf"none of its examples \({len(docs)}\) has {expected}"):
        nlp.initialize(lambda: [Example(doc, doc.copy()) for doc in docs])
    with pytest.raises(ValueError, match=r"E109|initialize"):
        nlp(docs[0])


@TASKS
def test_initialising_reads_the_examples_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And reading their span groups searches no entry points, which took most of the time."""
    nlp = blank(name)
    DocBin(docs=[example.reference for example in EXAMPLES[name](nlp)]).to_disk(tmp_path / "x.spacy")
    corpus, read = Corpus(tmp_path / "x.spacy"), []

    def examples() -> Any:
        read.append(name)
        return corpus(nlp)

    monkeypatch.setattr(catalogue.Registry, "get_entry_points", None)
    nlp.get_pipe(name).initialize(examples, nlp=nlp)  # type: ignore[attr-defined]
    assert read == [name]


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        (
            "semantic_roles",
            {"reach": 1},
            r"3 of 9 roles \(33%\) .* beyond reach = 1 of the component 'semantic_roles'.* 6 is enough for 95 %",
        ),
        ("coreference", {"model": {"max_width": 1}}, r"mentions .* beyond model\.max_width = 1"),
    ],
)
def test_annotations_that_it_can_never_predict(name: str, config: dict[str, Any], message: str) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe(name, config=config)
    with pytest.warns(LostAnnotationsWarning, match=message):
        nlp.initialize(lambda: EXAMPLES[name](nlp))


@pytest.mark.parametrize(
    ("source", "listener", "config"),
    [
        ("tok2vec", {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}, {"model": PLAIN}),
        pytest.param("elmo", elmo_block(), files("random_a") | {"frozen": False}, marks=pytest.mark.slow),
    ],
)
@TASKS
def test_a_listener_learns_too(name: str, source: str, listener: Any, config: Any) -> None:
    nlp = blank(name, listener)
    nlp.add_pipe(source, config=config, before=name)
    examples = EXAMPLES[name](nlp)
    optimizer = nlp.initialize(lambda: examples)
    before = nlp.get_pipe(source).to_bytes()  # type: ignore[attr-defined]
    for _ in range(2):  # output layers may start from zero, and hand no gradient down then
        assert nlp.update(examples, sgd=optimizer, drop=0.2)[name] > 0
    assert nlp.get_pipe(source).to_bytes() != before  # type: ignore[attr-defined]
    expected = results(nlp, name)
    nlp.replace_listeners(source, name, ["model.tok2vec"])
    nlp.remove_pipe(source)
    assert results(nlp, name) == expected


WAKES = """
import os, sys, torch
sys.path.insert(0, sys.argv[1])
import test_components as tests

def threads():
    return len(os.listdir("/proc/self/task"))

torch.set_num_threads(1)
made = [(name, tests.blank(name)) for name in tests.SIZES]
for name, nlp in made:
    tests.train(nlp, name, 1)
torch.set_num_threads(2)
before = threads()
for name, nlp in made:
    gold = tests.EXAMPLES[name](nlp) * 20
    nlp.update(gold, drop=0.1)
    list(nlp.pipe([example.predicted for example in gold]))
print(threads() - before)
torch.ones(10**6) + 1
print(threads() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux tells them")
def test_torch_wakes_no_threads_of_its_own() -> None:
    """Two threads and a helper are the package's. Torch's would spin beside a busy neighbour."""
    folder = str(Path(__file__).parent)
    helpers = str(Path(__file__).parents[1] / "helpers")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([helpers, os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run(
        [sys.executable, "-c", WAKES, folder], capture_output=True, text=True, timeout=300, env=environment
    )
    assert result.stdout.split() == ["3", "4"], result.stderr
