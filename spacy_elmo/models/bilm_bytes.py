"""A biLM's options and weights as the bytes of a saved pipeline, and the digest that names them."""

import hashlib
import json
from collections.abc import Mapping

import srsly

from ..errors import Errors, WeightsError
from ..formats.hdf5_checks import Floats
from ..formats.options import BiLMOptions
from ..formats.weights.checks import check_arrays


def to_message(options: BiLMOptions, arrays: Mapping[str, Floats]) -> bytes:
    """Options and weights in msgpack.

    arrays: the weights by parameter name, float32.
    """
    message: bytes = srsly.msgpack_dumps({"options": options.to_dict(), "arrays": arrays})
    return message


def from_message(message: bytes) -> tuple[BiLMOptions, dict[str, Floats]]:
    """What to_message was given. Raises ElmoError if the bytes are damaged, or sizes and arrays disagree."""
    try:
        found = srsly.msgpack_loads(message)
        saved_options, arrays = found["options"], dict(found["arrays"])
    except (ValueError, TypeError, KeyError) as error:
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error
    options = BiLMOptions.from_dict(saved_options, Errors.SAVED)
    check_arrays(arrays, options, Errors.SAVED)
    return options, arrays


def fingerprint_of(options: BiLMOptions, arrays: Mapping[str, Floats]) -> str:
    """A digest, 32 hexadecimal digits: the same for the same options and weights.

    arrays: the weights by parameter name, in any order.
    """
    digest = hashlib.blake2b(json.dumps(options.to_dict(), sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
