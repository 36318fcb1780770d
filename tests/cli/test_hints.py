"""Files of other kinds: the exit code, and a hint that helps."""

from __future__ import annotations

import numpy as np

from support.command import Ahpatron


def test_arrays_and_addresses(ahpatron: Ahpatron) -> None:
    np.savez(ahpatron.folder / "x.npz", X=np.eye(3), y=np.ones(3))
    np.save(ahpatron.folder / "x.npy", np.eye(3))
    for command in (["run", "x.npz"], ["inspect", "x.npz"], ["run", "x.npy"]):
        refused = ahpatron.refusal(65, *command)
        assert "dump_svmlight_file" in refused
        assert "--resume" not in refused
    refused = ahpatron.refusal(66, "run", "https://example.org/a9a")
    assert "curl -sSL https://example.org/a9a | ahpatron run -" in refused
