"""What `python -m spacy project run all` does beside spaCy's commands: with ELMo and without it on your own data.

python -m scripts.runs.own_data convert FILE corpus/own/train.spacy
python -m scripts.runs.own_data baseline elmo.cfg baseline.cfg    # the same networks without ELMo
python -m scripts.runs.own_data compare baseline.json elmo.json --model elmo/model-best
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import app
from spacy.util import load_config

from spacy_elmo.errors import CommandError

from ..shared import run_command
from .train_runs import sections_of


def convert(file: Path, output: Path) -> None:
    """Write FILE as a .spacy file: .conllu, .iob, .conll and .json by `spacy convert`, a .spacy file as it is."""
    if not file.is_file():
        raise CommandError(f"{file}: no such file. Expected your data: name it with --vars.train FILE --vars.dev FILE.")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = file
        if file.suffix != ".spacy":
            try:
                app(["convert", str(file), folder], standalone_mode=False)
                (made,) = Path(folder).iterdir()
            except (SystemExit, Exception) as error:  # spaCy has said why, or its reader failed anywhere
                why = "see above" if isinstance(error, SystemExit) else error
                raise CommandError(
                    f"{file}: not converted ({why}). Expected .conllu, .iob, .conll, .json or .spacy."
                ) from error
        shutil.copyfile(made, output)


def baseline(config: Path, output: Path) -> None:
    """Write CONFIG without ELMo: each network keeps its embedding and its encoder, and listens to no elmo pipe."""
    made = load_config(config)
    made["nlp"]["pipeline"].remove("elmo")
    del made["components"]["elmo"]
    for section in sections_of(made):
        if section.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1":
            parts = {name: section[name] for name in ("embed", "encode")}
            section.clear()
            section.update({"@architectures": "spacy.Tok2Vec.v2", **parts})
    made.to_disk(output)


def compare(
    without: Path,
    elmo: Path,
    model: Annotated[Path, typer.Option(help="Trained with ELMo: the scores become its description")],
) -> None:
    """Print what `spacy evaluate` measured of two pipelines, and how much ELMo brings."""
    both = [json.loads(path.read_text(encoding="utf-8")) for path in (without, elmo)]
    print(f"{'':24}{'x alone':>10}{'[x; ELMo]':>12}{'difference':>12}{'error cut':>12}")
    shown = []
    for name, base in both[0].items():
        score = both[1].get(name)
        if not isinstance(base, float) or not isinstance(score, float) or name.startswith("token_") or name == "speed":
            continue
        cut = f"{100 * (score - base) / (1 - base):.1f} %" if base < 1 else ""
        print(f"{name:24}{100 * base:10.2f}{100 * score:12.2f}{100 * (score - base):+12.2f}{cut:>12}")
        shown.append(f"{name} {100 * score:.1f} ({100 * base:.1f} without ELMo)")
    print(f"{'words per second':24}{both[0]['speed']:10,.0f}{both[1]['speed']:12,.0f}")
    print("One run of each: another seed changes the scores too. Train with another one by --vars.seed 1.")
    meta_path = model / "meta.json"
    meta = json.loads(meta_path.read_text(encoding="utf-8"))
    meta["description"] = f"Trained on ELMo. On the development part: {', '.join(shown)}."
    meta_path.write_text(json.dumps(meta, indent=2, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    run_command(convert, baseline, compare)
