"""All learners by name. To add one: write its class, and a line here."""

from ahpatron_cli.core.learners.ahpatron import Ahpatron
from ahpatron_cli.core.learners.ahpatron_plus import AhpatronPlus
from ahpatron_cli.core.learners.alma2 import Alma
from ahpatron_cli.core.learners.avp import AVP
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.learners.bogd import Bogd
from ahpatron_cli.core.learners.bogd_plus_plus import BogdPlusPlus
from ahpatron_cli.core.learners.fogd import FOGD
from ahpatron_cli.core.learners.forgetron import Forgetron
from ahpatron_cli.core.learners.nogd import NOGD
from ahpatron_cli.core.learners.perceptron import Perceptron
from ahpatron_cli.core.learners.pomdr import POMDR
from ahpatron_cli.core.learners.projectron import Projectron
from ahpatron_cli.core.learners.projectron_plus_plus import ProjectronPlusPlus
from ahpatron_cli.core.learners.rbp import RandomBudgetPerceptron
from ahpatron_cli.core.learners.skegd import SkeGD

REGISTRY: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (
        Ahpatron,
        AhpatronPlus,
        AVP,
        Perceptron,
        Alma,
        Forgetron,
        RandomBudgetPerceptron,
        Projectron,
        ProjectronPlusPlus,
        Bogd,
        BogdPlusPlus,
        FOGD,
        NOGD,
        SkeGD,
        POMDR,
    )
}

__all__ = [
    "AVP",
    "FOGD",
    "NOGD",
    "POMDR",
    "REGISTRY",
    "Ahpatron",
    "AhpatronPlus",
    "Alma",
    "Bogd",
    "BogdPlusPlus",
    "Forgetron",
    "Learner",
    "Perceptron",
    "Projectron",
    "ProjectronPlusPlus",
    "RandomBudgetPerceptron",
    "SkeGD",
]
