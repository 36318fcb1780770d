"""What the commands need to make setups of what was typed; the grammar is in `sweep/plan.py`."""

from ahpatron_cli.sweep.grid import parse
from ahpatron_cli.sweep.learners import choose_learners
from ahpatron_cli.sweep.plan import parse_label, settle_sigma, single_setups

build_setups = single_setups

__all__ = ["build_setups", "choose_learners", "parse", "parse_label", "settle_sigma"]
