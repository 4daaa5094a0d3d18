"""Random changes of bytes, of texts and of trees of lists and dicts. The same generator makes the same changes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
ODD_TEXTS = (
    *("", " ", "\0", "\ufeff", "\ud800", "\udfff", "\u2028", "\x85", "\r", "\u202e", "e\u0301" * 50, "👩‍👩‍👧"),
    *("\U0010ffff", "a" * 100_000, "../../etc/passwd", "${paths.train}", "{0.__class__}", "%s%n", "NaN", "1e999"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**200, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *([], {}, [[]], [1, 2], {"a": 1}, [None] * 50, b"", b"\xff\xfe"),
    *ODD_TEXTS,
)
JSON_VALUES = tuple(value for value in ODD_VALUES if not isinstance(value, bytes))


def mutated(data: bytes, random: Random) -> bytes:
    """Return a copy of some bytes with 1 to 8 changes: bits, numbers, blocks, cuts, and copies of other places."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        _change(changed, random)
    return bytes(changed)


def _change(data: bytearray, random: Random) -> None:
    if not data:
        data += random.randbytes(random.randint(1, 20))
        return
    place, kind = random.randrange(len(data)), random.randrange(8)
    end = min(len(data), place + random.choice((1, 2, 4, 8, 64, 512)))
    if kind <= 1:
        data[place] ^= 1 << random.randrange(8)
    elif kind == 2:
        data[place:end] = random.randbytes(end - place)
    elif kind == 3:
        size = random.choice((1, 2, 4, 8))
        number = random.choice(_NUMBERS) & (256**size - 1)
        data[place : place + size] = number.to_bytes(size, random.choice(("little", "big")))
    elif kind == 4:
        del data[place:end]
    elif kind == 5:
        source = random.randrange(len(data))
        data[place:end] = data[source : source + end - place]
    elif kind == 6:
        source = random.randrange(len(data))
        data[place:place] = data[source : source + end - place]
    else:
        del data[place:]


def changed_tree(tree: Any, random: Random, odd: Sequence[Any] = ODD_VALUES) -> Any:
    """Return a copy of a tree of dicts and lists, in which 1 to 3 places have odd values, other places', or are gone.

    odd: the values that can stand in a place.
    """
    tree = copy.deepcopy(tree)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return copy.deepcopy(random.choice(odd))
        holder, key = random.choice(places)
        kind = random.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, name = random.choice(places)
            if isinstance(other, dict) or name < len(other):
                holder[key] = copy.deepcopy(other[name])
        elif kind == 2 and isinstance(holder, dict):
            holder[random.choice((*ODD_TEXTS[:12], "extra"))] = copy.deepcopy(random.choice(odd))
        elif kind == 3 and isinstance(holder[key], (bytes, bytearray)):
            holder[key] = mutated(bytes(holder[key]), random)
        elif kind == 4:
            holder[key] = _nested(holder[key], random.choice((1, 2, 200)))
        else:
            holder[key] = copy.deepcopy(random.choice(odd))
    return tree


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    keys: Sequence[Any] = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        found.append((tree, key))
        found += _places(tree[key])
    return found


def one_of(random: Random, *makers: Callable[[], bytes]) -> bytes:
    """Return what one of some functions returns."""
    return random.choice(makers)()
