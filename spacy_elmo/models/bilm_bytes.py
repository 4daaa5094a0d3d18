"""A biLM's options and weights as the bytes of a saved pipeline, and the fingerprint that identifies them."""

import hashlib
import json
from collections.abc import Mapping

import srsly

from ..errors import Errors, WeightsError
from ..formats.hdf5_checks import Floats
from ..formats.options import BiLMOptions
from ..formats.options_checks import MAX_FILTERS
from ..formats.strict.messages import read_message
from ..formats.weights.checks import check_arrays

# More than the parameters of a biLM with the most layers, filters and highway layers that its options may have.
_MAX_ARRAYS = 1024


def to_message(options: BiLMOptions, arrays: Mapping[str, Floats]) -> bytes:
    """Return options and weights in msgpack.

    options: the biLM's options.
    arrays: the weights by parameter name, float32.
    """
    message: bytes = srsly.msgpack_dumps({"options": options.to_dict(), "arrays": arrays})
    return message


def from_message(message: bytes) -> tuple[BiLMOptions, dict[str, Floats]]:
    """Return the options and the weights by parameter name that `to_message` has written.

    message: the bytes that `to_message` returned.

    Raises WeightsError if the bytes are damaged, and ElmoError if the arrays do not have the sizes of the options.
    """
    try:
        content = read_message(message, longest_list=MAX_FILTERS, longest_map=_MAX_ARRAYS)
    except ValueError as error:
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error)) from error
    if (
        not isinstance(content, dict)
        or set(content) != {"options", "arrays"}
        or not isinstance(content["arrays"], dict)
    ):
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason="it is not options and arrays"))
    options, arrays = BiLMOptions.from_dict(content["options"], Errors.SAVED), content["arrays"]
    check_arrays(arrays, options, Errors.SAVED)
    return options, arrays


def fingerprint_of(options: BiLMOptions, arrays: Mapping[str, Floats]) -> str:
    """Return a digest of 32 hexadecimal digits, which is the same for the same options and weights.

    options: the biLM's options.
    arrays: the weights by parameter name, in any order.
    """
    digest = hashlib.blake2b(json.dumps(options.to_dict(), sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
