"""The counts of what was embedded."""

from pathlib import Path

from spacy_elmo.corpus.manifest import ShardFacts, Summary


def test_a_summary_names_the_first_bad_line_of_all_shards(tmp_path: Path) -> None:
    summary = Summary(tmp_path, "npy")
    for shard, skipped in enumerate(([], [("a", 3, "bad"), ("a", 4, "bad")], [("b", 1, "worse")])):
        summary.add(ShardFacts(shard, "file", 0, "", tokens=shard, skipped=skipped))
    assert (summary.tokens, summary.skipped, str(summary.first_skipped)) == (3, 3, "a, line 3: bad")
