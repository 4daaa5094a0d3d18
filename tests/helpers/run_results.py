"""Results of training runs, as evaluate_runs.py writes them."""

import json
from pathlib import Path
from typing import Any


def add_run(project: Path, name: str, scores: dict[str, Any], seed: int = 0, **more: Any) -> None:
    """Write the result of a run. name: of task and network, TASK/NETWORK. scores: of its test part."""
    result = {
        "fingerprint": f"{name}/{seed}",
        "commit": "abc123",
        "machine": "a processor, 2 cores",
        "bilm": "",
        "minutes": 7.4,
        "parameters": 12345,
        "megabytes": 6.78,
        "words_per_second": 1000 * (seed + 1),
        "dev": {},
        "tests": {"test": scores},
        "mixes": [],
    }
    path = project / "results" / name / f"seed-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result | more))
