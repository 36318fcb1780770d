"""All learners by name. To add one: write its class, and a line here."""

from ahpatron_cli.core.learners.avp import AVP, Ahpatron
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.learners.perceptron import Perceptron

REGISTRY: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (
        Ahpatron,
        AVP,
        Perceptron,
    )
}

__all__ = ["AVP", "REGISTRY", "Ahpatron", "Learner", "Perceptron"]
