"""The text that is embedded: sentences a line, of a file or like English."""

from pathlib import Path

from ..common.english_like import generated


def write_text(path: Path, tokens: int, source: Path | None) -> list[list[str]]:
    """Write a text of sentences a line, with a blank between words, and return the words of each.

    path: to write.
    tokens: how many at least; a shorter source is repeated.
    source: file of sentences a line, such as a part of Wikipedia; None: sentences are generated.
    """
    lines = None if source is None else source.read_text(encoding="utf-8").splitlines()
    pool = generated(20_000, 0) if lines is None else [line.split() for line in lines if line.strip()]
    n = 0
    sentences: list[list[str]] = []
    while n < tokens:
        sentences.append(pool[len(sentences) % len(pool)])
        n += len(sentences[-1])
    path.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    return sentences
