"""Several processes on one machine: which error is told if one can't start, or if several shards fail."""

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tasks import examples, with_tasks

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import EmbedColumns, embed, workers
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.shards import Shard, ShardFacts, ShardSettings, ShardWriter
from spacy_elmo.corpus.writing import Selection
from spacy_elmo.errors import CorpusError, ProcessError, SettingsError
from spacy_elmo.text.stream import Item

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")


SETTINGS = ShardSettings(BiLMChoice(BILM), "npy", Selection("mean", sentence=True), None, tokenized=True, docs=False)


@pytest.mark.slow
def test_an_error_in_the_file_of_code_is_told(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("class OwnError(Exception): pass\n\nraise OwnError('no such table')\n")
    (tmp_path / "text.txt").write_text("a b c\n" * 50)
    with pytest.raises(ProcessError, match=r"could not start \(OwnError: no such table\)\. .* code \(--code\) names"):
        embed(tmp_path / "text.txt", tmp_path / "out", format="spacy", bilm=BILM, workers=2, code=tmp_path / "code.py")


class FailingPool:
    """In the place of a pool of processes: shards from number 1 on fail at once."""

    def __init__(self, *_: object) -> None:
        pass

    def submit(self, make: object, shard: Shard, folder: Path) -> "Future[ShardFacts]":
        future: Future[ShardFacts] = Future()
        if shard.number:
            future.set_exception(ValueError(f"shard {shard.number}"))
        else:
            future.set_result(ShardFacts(0, "part-000000.npy", 0, ""))
        return future

    def shutdown(self, **_: object) -> None:
        pass


def test_the_first_error_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fourth shard is waited for before the fifth is read."""
    monkeypatch.setattr(workers, "ProcessPoolExecutor", FailingPool)
    done, shards = list[int](), (Shard(number, []) for number in range(8))
    with pytest.raises(ValueError, match="shard 1"):
        workers.run_workers(shards, SETTINGS, 2, tmp_path, lambda facts, size: done.append(facts.shard))
    assert done == [0]
    assert next(shards).number == 4


STORE = 80_000_000  # bytes of each node's object store; Ray accepts no less than 75 MB
SECONDS = 120  # after which what is waited for will not come


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A Ray cluster of one node on this machine, with one core."""
    utils = pytest.importorskip("ray.cluster_utils", reason="ray is not installed")
    temporary = Path(tempfile.mkdtemp(prefix="ray"))  # the paths of sockets may not be longer
    folder = temporary / "ray"
    folder.mkdir()
    quick = {"health_check_initial_delay_ms": 1_000, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    started = utils.Cluster()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray writes the cluster's address to RAY_TMPDIR/ray. /tmp/ray need not exist, or is a user's
        patch.setenv("RAY_TMPDIR", str(temporary))
        try:
            started.add_node(
                num_cpus=1,
                object_store_memory=STORE,
                include_dashboard=False,
                temp_dir=str(folder),
                _system_config=quick,
            )
            yield started
        finally:
            started.shutdown()
            shutil.rmtree(temporary)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(b"".join(b"Sentence %d isn't long.\n" % i for i in range(300)) + b"\xff\n")
    return path


def table_of(folder: Path) -> list[dict[str, Any]]:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    return [row for path in sorted((folder / "shards").iterdir()) for row in parquet.read_table(path).to_pylist()]


def test_a_machine_that_does_not_share_the_folder_is_named(tmp_path: Path) -> None:
    shard = Shard(0, [Item("a", 1, "text", b"x")])
    with pytest.raises(CorpusError, match="does not have the same folder at this path"):
        workers._make_on_cluster([], "command", shard, tmp_path / "mark")


def test_a_task_ends_when_its_mark_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, mark = ShardWriter(SETTINGS), tmp_path / "mark"
    mark.touch()
    embed_window = Selection.embed

    def embed_and_delete(*given: Any) -> Any:
        mark.unlink()
        return embed_window(*given)

    monkeypatch.setattr(Selection, "embed", embed_and_delete)
    monkeypatch.setattr(workers, "_cluster_writer", ("command", writer))
    with pytest.raises(CorpusError):
        workers._make_on_cluster([], "command", Shard(0, [Item("a", 1, "text", b"x")]), mark)
    assert not [*tmp_path.iterdir()]


def test_another_version_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"has spacy-elmo .*\. Expected 0\.0\.1,"):
        workers._load_of("0.0.1", SETTINGS, *SETTINGS.bilm.load_arrays())


def test_long_waits_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first task is finished when it was waited for the fourth time. All of it takes no time."""
    waits: list[float] = []

    def wait(tasks: list[str], timeout: float) -> tuple[list[str], list[str]]:
        waits.append(timeout)
        return (tasks[:1], tasks[1:]) if len(waits) == 4 else ([], tasks)

    ray = SimpleNamespace(wait=wait, cluster_resources=lambda: {"CPU": 8.0}, available_resources=lambda: {"CPU": 7.0})
    monkeypatch.setattr(time, "monotonic", lambda: sum(waits))
    says = "2 are being made or wait: a shard needs 1 CPU and 1 GPU, .* has 8 CPU and 0 GPU, of which 7 CPU and 0 GPU"
    with pytest.warns(UserWarning, match=says) as told:
        assert workers._finished(ray, ["a", "b"], ("CPU", "GPU")) == ["a"]
    assert [int(str(one.message).split(" seconds")[0].split()[-1]) for one in told] == [60, 180, 420]


def test_without_ray_the_error_says_what_to_install(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match=r"spacy-elmo\[ray\]"):
        embed(text, tmp_path / "out", bilm=BILM, engine="ray")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_address_without_a_cluster_is_refused_at_once(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # nobody listens there after this
    for address in (f"127.0.0.1:{port}", "nonsense"):
        with pytest.raises(SettingsError, match=f"its address is {address}"):
            embed(text, tmp_path / "out", bilm=BILM, engine="ray", address=address)
    assert not (tmp_path / "out").exists()


# what each Ray process of the test below imports. The first one kills itself. One on the second node stops in the
# middle of a file, until the test kills that node
ACCIDENTS = """
import os, signal, time
from pathlib import Path
import ray
from spacy_elmo.corpus.writing import Selection
here = Path(__file__).parent
embed = Selection.embed

def embed_or_die(*given):
    if ray.get_runtime_context().get_node_id() == (here / "victim").read_text():
        (here / "reached").write_text(str(os.getpid()))
        time.sleep(600)
    if not (here / "killed").exists():
        (here / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return embed(*given)

Selection.embed = embed_or_die
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no shard was finished for")  # on a busy machine a minute may pass
def test_a_killed_process_and_a_killed_node(nodes: Any, text: Path, tmp_path: Path) -> None:
    expected = embed(text, tmp_path / "local", bilm=BILM, shard_size=500)
    victim = nodes.add_node(num_cpus=1, object_store_memory=STORE)
    accidents = tmp_path / "accidents"
    accidents.mkdir()
    (accidents / "code.py").write_text(ACCIDENTS)
    (accidents / "victim").write_text(victim.node_id)

    def kill_node() -> None:
        deadline = time.monotonic() + SECONDS
        while not (accidents / "reached").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)  # until it is written
        os.kill(victim.all_processes["raylet"][0].process.pid, signal.SIGKILL)
        os.kill(int((accidents / "reached").read_text()), signal.SIGKILL)  # a machine that dies takes it along

    killer = threading.Thread(target=kill_node)
    killer.start()
    found = embed(
        text, tmp_path / "ray", bilm=BILM, shard_size=500, engine="ray", address=nodes.address,
        code=accidents / "code.py",
    )  # fmt: skip
    killer.join()
    nodes.remove_node(victim)
    assert (accidents / "reached").exists()
    assert (accidents / "killed").exists()
    assert (found.shards, found.sentences, found.tokens, found.skipped) == (expected.shards, 300, expected.tokens, 1)
    assert expected.shards > 10
    tops = tmp_path / "ray", tmp_path / "local"
    names, wanted = (sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in tops)
    assert names == wanted
    skipped, wanted_skipped = ((top / "skipped.jsonl").read_bytes() for top in tops)
    assert skipped == wanted_skipped
    rows, wanted_rows = map(table_of, tops)
    vectors = [np.array([row.pop("vectors") for row in each]) for each in (rows, wanted_rows)]
    assert rows == wanted_rows
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data")  # of its own settings
def test_columns_in_ray_data_and_a_pipeline_in_a_task(nodes: Any) -> None:
    """EmbedColumns in an ActorPoolStrategy; a trained pipeline as an object reference (spaCy's issue 13506)."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    data = pytest.importorskip("ray.data", reason="ray.data lacks pandas or pyarrow")
    nlp = with_tasks("tagger")
    nlp.initialize(lambda: examples(nlp))
    texts = [f"Sentence {i} isn't long." for i in range(30)] + ["", "Yes."]
    with workers.connected(nodes.address):
        data.DataContext.get_current().enable_progress_bars = False
        found = (
            data.from_items([{"text": text, "number": i} for i, text in enumerate(texts)])
            .map_batches(
                EmbedColumns,
                fn_constructor_kwargs={"bilm": BILM},
                compute=data.ActorPoolStrategy(size=1),
                batch_size=10,
            )
            .take_all()
        )
        tag = ray.remote(lambda nlp, texts: [[token.tag_ for token in doc] for doc in nlp.pipe(texts)])
        tags = ray.get(tag.remote(ray.put(nlp), texts))
    rows = sorted(found, key=lambda row: row["number"])
    assert [row["text"] for row in rows] == texts
    layers = ElmoEmbedder(BILM).embed_batch([list(row["tokens"]) for row in rows])
    for row, expected in zip(rows, layers, strict=True):
        np.testing.assert_allclose(np.array(row["vectors"]), expected.mean(0), atol=1e-5)
    assert tags == [[token.tag_ for token in nlp(text)] for text in texts]
