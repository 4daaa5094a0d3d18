"""The package's errors and warnings. A message says what was got, what was expected and what to change."""

import reprlib
from collections.abc import Sequence
from numbers import Integral

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


class ElmoError(ValueError):
    """Base class of the package's errors."""


class OptionsError(ElmoError):
    """An options file, or the sizes in it, can't be used."""


class WeightsError(ElmoError):
    """A weight file, or a set of parameters, can't be used."""


class VectorsError(ElmoError):
    """A file of embedded sentences can't be read or written."""


class SettingsError(ElmoError):
    """A setting of a component, an architecture or a training run can't be used."""


class CheckpointError(ElmoError):
    """A checkpoint of a training run can't be read or written."""


class ProcessError(ElmoError):
    """One of the processes of a run can't go on."""


class OtherProcessError(ProcessError):
    """Another process of a run has an error, and reports it itself."""


class CorpusError(ElmoError):
    """A text, or an index of its words, can't be used."""


class AnnotationError(ElmoError):
    """The annotations of a doc are not what a component can read or learn from."""


class CommandError(ElmoError):
    """What a command was given can't be used."""


class DownloadError(ElmoError):
    """A file can't be downloaded, or is not the one that was asked for."""


class CacheError(ElmoError):
    """The file in which a frozen biLM's layers are cached can't be used."""


class KernelError(ElmoError):
    """A compiled loop was given an array that it can't read."""


class NotEmbeddedError(ElmoError, AttributeError):
    """A doc has no vectors that could be read; an AttributeError, as spaCy asks for attributes with hasattr."""


class TruncatedWordsWarning(UserWarning):
    """Words had more bytes than the biLM reads; the other bytes made no difference.

    message: what it says, to users of commands too.
    where: what it says after that, to those who write a program: where such words are counted.
    """

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message, where)
        self.message = message

    def __str__(self) -> str:
        return " ".join(self.args)


class ChangedBiLMWarning(UserWarning):
    """A component predicts with another biLM than it was trained with."""


class OtherLanguageWarning(UserWarning):
    """A pipeline has a biLM of another language."""


class OptionsWarning(UserWarning):
    """An options.json may not be what its weights were trained with."""


class UnusedLayersWarning(UserWarning):
    """Layers are computed, but nobody reads them."""


class CacheWarning(UserWarning):
    """Layers are no longer written to the file in which they are cached."""


class LoopsWarning(UserWarning):
    """The compiled loops can't be used, so torch does their work."""


class UnknownLabelWarning(UserWarning):
    """Annotations have a label that a component does not have; it does not learn them."""


class LostAnnotationsWarning(UserWarning):
    """A component can't predict some of the annotations that it is given to learn from."""


class PlainTextWarning(UserWarning):
    """A text is read as plain text, but looks like JSON lines or a table."""


class StandardInputWarning(PlainTextWarning):
    """The same of standard input."""


def shown(value: object) -> str:
    """A short representation of an untrusted value, fit for a message."""
    kind = type(value)
    if kind.__module__.startswith("spacy.tokens"):  # else a Token looks like its text
        return f"the {kind.__name__} {_REPR.repr(str(value))}"
    try:
        return _REPR.repr(value)
    except ValueError:  # an integer with more digits than Python converts
        return f"<{type(value).__name__}>"


def listed(items: Sequence[object], separator: str = ", ") -> str:
    """Return the first ten items as text, and how many more there are."""
    more = len(items) - 10
    text = separator.join(map(str, items[:10]))
    return f"{text} and {more:,} more" if more > 0 else text


def check_whole(least: int = 1, /, **settings: object) -> None:
    """Raise SettingsError if one of the settings, by name, is no whole number of `least` or more."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise SettingsError(f"{name} is {shown(value)}. Expected a whole number, {least} or more.")


# Messages of several rooms
CHECKPOINT_PARTS = (
    "{path}: not a checkpoint of this run ({problems}). Delete it to start from the beginning, or put "
    "the right one there."
)
FILE_MISSING = "{path}: no such file. Expected {expected}."
FILE_NOT_REGULAR = "{path}: a folder or a special file. Expected {expected}."
FILE_UNREADABLE = "{path}: can't be read ({reason}). Expected {expected}."
MIX_FINITE = "scalar_mix_parameters are {got}. Expected finite numbers: to leave a layer out, give it -1e10."
SOURCE_DAMAGED = "{path}: damaged, cut short or unreadable ({reason}). Get the file again, or leave it out."
