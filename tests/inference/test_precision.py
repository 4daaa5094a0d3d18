"""bfloat16 where the machine has it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from golden_files import read_golden

from spacy_elmo import bilms
from spacy_elmo.errors import SettingsError
from spacy_elmo.inference import Engine, dtype_of
from spacy_elmo.models.bilm import build_bilm
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules import loading as precision

CPU = torch.device("cpu")


@pytest.mark.parametrize("has", [True, False])
def test_what_the_settings_mean(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: has)
    assert dtype_of("float32", CPU) == torch.float32
    assert dtype_of("auto", CPU) == (torch.bfloat16 if has else torch.float32)
    if has:
        assert dtype_of("bfloat16", CPU) == torch.bfloat16
        assert build_bilm(precision="bfloat16").name == "elmo_bilm"
    else:
        for use in (lambda: dtype_of("bfloat16", CPU), lambda: build_bilm(precision="bfloat16")):
            with pytest.raises(
                SettingsError, match=r'cpu has no matrix multiplications in bfloat16\. Set it to "float32"'
            ):
                use()
    with pytest.raises(SettingsError, match="precision is 'int8'"):
        dtype_of("int8", CPU)  # type: ignore[arg-type]


def test_what_the_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(precision, "Path", lambda _: cpuinfo)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    assert not precision.has_bfloat16(CPU)
    for flags, has in (("flags : fpu avx512f", False), ("flags : fpu amx_bf16", True), ("Features : fp bf16", True)):
        cpuinfo.write_text(flags)
        assert precision.has_bfloat16(CPU) == has


@pytest.mark.parametrize("name", ["random_a", "en_mini"])
def test_bfloat16_products_stay_near(golden: Path, name: str) -> None:
    """The same code runs, emulated, on machines without."""
    bilm = read_golden(golden / name).bilm if name == "random_a" else load_bilm(*bilms.paths(name))
    sentences = [["We", "sat", "on", "the", "river", "bank", "."], ["Stick", "to", "it"]] * 4
    exact = np.concatenate(Engine.of(bilm).run(sentences), 1)
    near = np.concatenate(Engine.of(bilm, torch.bfloat16).run(sentences), 1)
    assert near.dtype == np.float32
    error = np.linalg.norm(near - exact) / np.linalg.norm(exact)
    assert 1e-5 < error < 0.03  # 8 bits of mantissa; 0.017 was seen at the original size
    cosine = (near * exact).sum(2) / np.linalg.norm(near, axis=2) / np.linalg.norm(exact, axis=2)
    assert cosine.min() > 0.99
