"""For every registered learner: settings to test it in, and its reference implementation."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ahpatron_cli.core import KERNELS, REGISTRY, Learner
from reference import gradient_twins, kernels, second_order, span_twins, twins, two_memories
from reference.trace import Trace


@dataclass(frozen=True)
class Case:
    """A learner in one setting."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)

    def learner(self) -> Learner:
        return REGISTRY[self.name](**self.params)

    def twin(self, *stream: Any) -> Trace:
        return TWINS[self.name](*stream, **self.params)

    @property
    def only_gaussian(self) -> bool:
        """Whether it accepts the Gaussian kernel only."""
        return self.name == "fogd" or self.params.get("maintenance") == "merge"

    def __str__(self) -> str:
        settings = ",".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.name}({settings})"


KERNEL_PAIRS = {
    name: (KERNELS[name](**params), formula) for name, (params, formula) in kernels.FORMULAS.items()
}
"""Each kernel, and its formula."""

PROJECTING = [
    Case("projectron"),
    Case("projectron++", {"tolerance": 0.3}),
    Case("projectron++", {"tolerance": 0.9, "rule": "full"}),
    Case("pomdr", {"budget": 12, "horizon": 100}),
    Case("avp-ogs", {"horizon": 500}),
]
"""Learners that project onto the span of S."""

TWINS: dict[str, Callable[..., Trace]] = {
    "perceptron": twins.perceptron,
    "avp": twins.avp,
    "ahpatron": twins.ahpatron,
    "ahpatron+": twins.ahpatron_plus,
    "arow": second_order.arow,
    "metron": two_memories.metron,
    "alma2": twins.alma2,
    "forgetron": twins.forgetron,
    "rbp": twins.rbp,
    "projectron": span_twins.projectron,
    "projectron++": span_twins.projectron_pp,
    "bogd": twins.bogd,
    "bogd++": twins.bogd_pp,
    "fogd": gradient_twins.fogd,
    "nogd": gradient_twins.nogd,
    "skegd": gradient_twins.skegd,
    "pomdr": span_twins.pomdr,
    "budget-perceptron": twins.budget_perceptron,
    "tighter-perceptron": twins.tighter_perceptron,
    "norma": twins.norma,
    "silk": twins.silk,
    "bsgd": span_twins.bsgd,
    "bpa-s": twins.bpa_s,
    "krls": span_twins.krls,
    "polk": span_twins.polk,
    "avp-ogs": span_twins.avp_ogs,
    "forks": gradient_twins.forks,
}


CASES = [
    Case("perceptron"),
    Case("avp"),
    Case("avp", {"epsilon": 0.8, "radius": 1.5, "step": 0.4}),
    Case("avp", {"epsilon": 0.6, "radius": 2.0, "schedule": "adaptive"}),
    Case("ahpatron", {"budget": 2}),
    Case("ahpatron", {"budget": 8}),
    Case("ahpatron", {"budget": 12, "epsilon": 0.9, "ridge": 0.1}),
    Case("ahpatron", {"budget": 10, "rescale": 0.6}),
    Case("ahpatron", {"budget": 10, "selection": "greedy"}),
    Case("ahpatron", {"budget": 6, "selection": "greedy", "rescale": 1.0, "step": 0.7}),
    Case("ahpatron", {"budget": 10, "selection": "nearest"}),
    Case("ahpatron", {"budget": 8, "schedule": "adaptive", "radius": 2.8, "step": 0.25}),
    Case("ahpatron", {"budget": 14, "radius": 0.5, "step": 0.3}),
    Case("ahpatron+", {"budget": 2}),
    Case("ahpatron+", {"budget": 12}),
    Case("ahpatron+", {"budget": 10, "epsilon": 0.5, "radius": 1.5, "step": 0.9, "ridge": 0.1}),
    Case("ahpatron+", {"budget": 10, "selection": "greedy"}),
    Case("ahpatron+", {"budget": 8, "selection": "magnitude", "schedule": "constant"}),
    Case("arow", {"budget": 1}),
    Case("arow", {"budget": 6}),
    Case("arow", {"budget": 20, "noise": 1.0, "floor": 0.1, "tolerance": 0.1}),
    Case("arow", {"budget": 12, "alarm": 1.5}),
    Case("arow", {"budget": 12, "caution": 1.0}),
    Case("metron", {"budget": 1}),
    Case("metron", {"budget": 6}),
    Case("metron", {"budget": 40}),
    Case("metron", {"budget": 12, "alarm": 1.5}),
    Case("metron", {"budget": 1, "tracker": "off"}),
    Case("metron", {"budget": 6, "tracker": "off"}),
    Case("metron", {"budget": 40, "tracker": "off"}),
    Case("metron", {"budget": 12, "alarm": 1.5, "tracker": "off"}),
    Case("alma2"),
    Case("alma2", {"alpha": 0.6, "beta": 2.0, "gain": 0.5}),
    Case("forgetron", {"budget": 1}),
    Case("forgetron", {"budget": 7}),
    Case("forgetron", {"budget": 25}),
    Case("rbp", {"budget": 1}),
    Case("rbp", {"budget": 7}),
    Case("rbp", {"budget": 25}),
    Case("projectron"),
    Case("projectron", {"tolerance": 0.5}),
    Case("projectron", {"tolerance": 0.9}),
    Case("projectron", {"budget": 1}),
    Case("projectron", {"budget": 5}),
    Case("projectron++"),
    Case("projectron++", {"tolerance": 0.9}),
    Case("projectron++", {"tolerance": 0.1, "rule": "full"}),
    Case("projectron++", {"tolerance": 0.9, "rule": "full"}),
    Case("projectron++", {"budget": 5}),
    Case("projectron++", {"budget": 8, "rule": "full"}),
    Case("bogd", {"budget": 6, "step": 0.3}),
    Case("bogd", {"budget": 20, "step": 0.2, "shrinkage": 0.05, "cap": 1.5}),
    Case("bogd++", {"budget": 6, "step": 0.3}),
    Case("bogd++", {"budget": 20, "step": 0.2, "shrinkage": 0.05, "cap": 1.5}),
    Case("fogd", {"features": 1, "step": 0.37}),
    Case("fogd", {"features": 7, "step": 0.37}),
    Case("fogd", {"features": 40, "step": 1.3}),
    Case("nogd", {"budget": 1, "step": 0.37}),
    Case("nogd", {"budget": 9, "step": 0.37}),
    Case("nogd", {"budget": 8, "step": 1.3, "rank": 8}),
    Case("nogd", {"budget": 20, "step": 0.61, "rank": 5}),
    Case("skegd", {"budget": 1, "step": 0.37, "cycle": 3}),
    Case("skegd", {"budget": 10, "step": 0.37, "cycle": 4}),
    Case("skegd", {"budget": 12, "step": 0.61, "cycle": 1, "sketch": 12, "samples": 4, "rank": 3}),
    Case("pomdr", {"budget": 2, "horizon": 50}),
    Case("pomdr", {"budget": 6, "horizon": 80}),
    Case("pomdr", {"budget": 20, "horizon": 100, "radius": 4.0}),
    Case("pomdr", {"budget": 60, "horizon": 50, "memory": 40}),
    Case("pomdr", {"budget": 24, "horizon": 4, "memory": 1, "radius": 1.5}),
    Case("budget-perceptron", {"budget": 1}),
    Case("budget-perceptron", {"budget": 7}),
    Case("budget-perceptron", {"budget": 12, "threshold": 0.5}),
    Case("tighter-perceptron", {"budget": 1}),
    Case("tighter-perceptron", {"budget": 7}),
    Case("norma", {"budget": 1}),
    Case("norma", {"budget": 9, "step": 0.4, "shrinkage": 0.2}),
    Case("norma", {"budget": 20, "threshold": 0.3}),
    Case("silk", {"budget": 1}),
    Case("silk", {"budget": 9, "step": 0.4, "shrinkage": 0.2}),
    Case("silk", {"budget": 15, "loss_weight": 0.3, "threshold": 0.7}),
    Case("bsgd", {"budget": 1}),
    Case("bsgd", {"budget": 9, "regularisation": 0.1}),
    Case("bsgd", {"budget": 1, "maintenance": "project"}),
    Case("bsgd", {"budget": 8, "regularisation": 0.1, "maintenance": "project"}),
    Case("bsgd", {"budget": 20, "maintenance": "project"}),
    Case("bsgd", {"budget": 1, "maintenance": "merge"}),
    Case("bsgd", {"budget": 8, "regularisation": 0.1, "maintenance": "merge"}),
    Case("bsgd", {"budget": 20, "maintenance": "merge"}),
    Case("bpa-s", {"budget": 1}),
    Case("bpa-s", {"budget": 9}),
    Case("bpa-s", {"budget": 15, "aggressiveness": 0.3}),
    Case("krls"),
    Case("krls", {"tolerance": 0.01}),
    Case("krls", {"tolerance": 0.6}),
    Case("polk"),
    Case("polk", {"step": 0.3, "shrinkage": 0.2, "tolerance": 0.05}),
    Case("polk", {"tolerance": 0.6}),
    Case("avp-ogs", {"horizon": 100}),
    Case("avp-ogs", {"horizon": 1000}),
    Case("avp-ogs", {"tolerance": 0.001, "epsilon": 0.1}),
    Case("avp-ogs", {"tolerance": 0.5, "radius": 1.5, "gain": 2.0}),
    Case("avp-ogs", {"tolerance": 0.01, "radius": 0.5, "gain": 1.0}),
    Case("forks", {"budget": 1, "cycle": 3}),
    Case("forks", {"budget": 10, "horizon": 60}),
    Case("forks", {"budget": 12, "cycle": 1, "sketch": 12, "samples": 4, "rank": 3}),
    Case("forks", {"budget": 20, "cycle": 2, "rank": 5, "step": 0.7, "ridge": 0.5}),
]
