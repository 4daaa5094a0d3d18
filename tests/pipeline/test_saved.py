"""Commands tell what is wrong with a saved pipeline, in whatever file of spaCy's the damage is."""

from pathlib import Path

import pytest
from pipelines import pipeline

from spacy_elmo.errors import CommandError
from spacy_elmo.pipeline.saved import load_tokenizer, pipeline_weights


@pytest.mark.slow
def test_damaged_pipelines(tmp_path: Path) -> None:
    pipeline(None).to_disk(tmp_path)
    assert pipeline_weights(str(tmp_path))[0].width == 512
    for name, content in (
        ("vocab/vectors", b""),  # spaCy raises an EOFError
        ("vocab/strings.json", b"[1]"),  # a TypeError
        ("vocab/vectors.cfg", b"[1]"),  # an AttributeError
        ("meta.json", b"\xff"),
        ("config.cfg", b"{}"),
        ("elmo/model", b"\x81"),
    ):
        before = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CommandError, match="can't be loaded"):
            pipeline_weights(str(tmp_path))
        (tmp_path / name).write_bytes(before)


def test_a_tokenizer_comes_without_pipes(tmp_path: Path) -> None:
    """Also without those that are disabled."""
    nlp = pipeline()
    nlp.add_pipe("sentencizer")
    nlp.disable_pipe("elmo")
    nlp.to_disk(tmp_path)
    found = load_tokenizer(str(tmp_path))
    assert (found.lang, found.component_names) == ("xx", [])
