"""What a saved state has, as numbers that can be compared."""

from pathlib import Path
from typing import Any

import numpy as np

from ahpatron_cli.model_file import load_model


def numbers(path: Path) -> dict[str, Any]:
    """All numbers of a state but times, by path; arrays as bytes."""
    model = load_model(str(path))
    found: dict[str, Any] = {}

    def collect(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                collect(f"{name}.{key}", one)
        elif not name.endswith("seconds"):
            found[name] = value.tobytes() if isinstance(value, np.ndarray) else repr(value)

    collect("state", model.state)
    collect("live", model.live)
    return found
