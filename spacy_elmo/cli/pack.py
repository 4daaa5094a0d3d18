"""`elmo pack`: a smaller copy of a biLM."""

from enum import Enum
from pathlib import Path

from spacy.cli._util import Arg, Opt

from ..pretraining.language_model import SOFTMAX
from ..pretraining.pack import pack as pack_model
from . import shared
from .console import msg

_ALL_BITS = 23  # of a float32's mantissa
Stored = Enum("Stored", {"float16": "float16", "float32": "float32", "none": "none"})


def pack(
    model: str = Arg(..., metavar="MODEL", help=shared.MODEL),
    output: Path = Arg(..., metavar="OUT", help="Folder to write"),
    mantissa_bits: int = Opt(10, min=1, max=_ALL_BITS, metavar="N", help="Bits of each mantissa; 23: unchanged"),
    bits: int | None = Opt(None, min=2, max=16, metavar="N", help="Bits of the values in matrices, such as 8"),
    softmax: Stored = Opt(Stored.float16, help="Type of the softmax; float32: unchanged; none: left out"),
    pipe: shared.PipeName = None,
    force: shared.Force = False,
) -> None:
    """The copy has rounded weights in compressed HDF5 files. AllenNLP, bilm-tf and other programs can read them. MODEL
    may also be a saved pipeline: the copy then has its biLM as it was tuned.
    """
    with shared.folder_of_bilm(model, pipe) as folder:
        packed = pack_model(folder, output, mantissa_bits, softmax.value, force, bits)
    if packed.largest == 0 and mantissa_bits < _ALL_BITS:
        msg.text(f"{model} was packed before: the copy has the same weights. Fewer --bits make it smaller.")
    else:
        total = [sum(sizes) for sizes in zip(*packed.sizes.values())]
        rows = [(name, *sizes) for name, sizes in packed.sizes.items()] + [("together", *total)]
        cells = [(name, f"{before:,}", f"{after:,}", f"{after / max(1, before):.0%}") for name, before, after in rows]
        msg.table(cells, header=("bytes", "before", "after", ""), aligns="lrrr")
        parts = [(name, f"{change:.2g}") for name, change in packed.norms.items() if not name.endswith("bias")]
        msg.table(parts, header=("matrix", "change / norm"), aligns="lr")
        msg.text(f"relative change of the weights: {packed.largest:.2g} at most, {packed.mean:.2g} in the mean")
    if SOFTMAX not in packed.sizes and softmax.value != "none":
        msg.info(f"{model} has no softmax")
    msg.good(f"{output}: written")
