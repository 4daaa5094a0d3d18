"""Which pipe feeds a listener; and copies are fed if what they are copies of was fed."""

import copy
from typing import Any

from spacy_elmo.models.listener import Source, Upstream

NO_DOCS: Any = None


def test_copies_with_their_pipe_are_fed_if_the_listener_was() -> None:
    source, upstream = Source("elmo", "elmo", NO_DOCS), Upstream("*")
    upstream.bind(source, ())
    alone = copy.deepcopy(upstream)  # as spaCy copies a component for rehearsing
    assert (alone.source, set(source.upstreams)) == (source, {upstream})
    other, fed, unfed = copy.deepcopy([source, upstream, alone])
    assert (fed.source, unfed.source) == (other, other)
    assert set(other.upstreams) == {fed}


def test_one_pipe_feeds_a_listener() -> None:
    first, second, upstream = Source("a", "a", NO_DOCS), Source("b", "b", NO_DOCS), Upstream("*")
    upstream.bind(first, ())
    upstream.bind(second, ())
    assert (upstream.source, set(first.upstreams), set(second.upstreams)) == (second, set(), {upstream})
    upstream.unbind(first)  # it feeds it no more, so nothing happens
    assert (upstream.source, set(second.upstreams)) == (second, {upstream})
    upstream.unbind(second)
    assert (upstream.source, set(second.upstreams)) == (None, set())
