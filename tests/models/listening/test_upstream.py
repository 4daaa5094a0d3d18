"""Copies of a listener's upstream are fed if what they are copies of was fed."""

import copy
from typing import Any

from spacy_elmo.models.listening.upstream import Source, Upstream

NO_DOCS: Any = None


def test_copies_with_their_pipe_are_fed_if_the_listener_was() -> None:
    source, upstream = Source("elmo", "elmo", NO_DOCS), Upstream("*")
    upstream.bind(source, ())
    alone = copy.deepcopy(upstream)  # as spaCy copies a component for rehearsing
    assert (alone.source, set(source.upstreams)) == (source, {upstream})
    other, fed, unfed = copy.deepcopy([source, upstream, alone])
    assert (fed.source, unfed.source) == (other, other)
    assert set(other.upstreams) == {fed}
