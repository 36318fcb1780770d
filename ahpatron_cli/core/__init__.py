"""The plain NumPy core: kernels, learners and the engine. No I/O, no printing; usable alone.

from ahpatron_cli.core import Ahpatron, Gaussian, play
tally = play(Ahpatron(budget=400), X, y, Gaussian(sigma=0.5)).tally

row      an example as the data have it: a line of a dense array, or compressed (`CsrRows`)
point    a row in kernel-ready form: scaled by σ, centred if dense, its squared length known
block    64 consecutive rounds whose kernel values are computed together; no result depends on it
round    one example: predict with f, see the label, update f if the learner wants to
S        the active set: the examples that f is made of; |S| is the support size, B the budget
place    a row of the open block's table of kernel values: the examples of S, then its rounds
"""

from ahpatron_cli.core.engine import ALGORITHM, BLOCK, Player, Tally, play
from ahpatron_cli.core.errors import (
    LearnerLoadError,
    LimitReachedError,
    NumericalError,
    ParameterError,
)
from ahpatron_cli.core.kernels import KERNELS, Gaussian, Kernel, Laplacian, Linear, Polynomial
from ahpatron_cli.core.learners import (
    AVP,
    BSGD,
    FOGD,
    KRLS,
    NOGD,
    POMDR,
    REGISTRY,
    Ahpatron,
    AhpatronPlus,
    Alma,
    Arow,
    Bogd,
    BogdPlusPlus,
    BpaS,
    BudgetPerceptron,
    Forgetron,
    Learner,
    Norma,
    Perceptron,
    Polk,
    Projectron,
    ProjectronPlusPlus,
    RandomBudgetPerceptron,
    Silk,
    SkeGD,
    TighterPerceptron,
    find_learner,
    learner_source,
    register,
)

__all__ = [
    "ALGORITHM",
    "AVP",
    "BLOCK",
    "BSGD",
    "FOGD",
    "KERNELS",
    "KRLS",
    "NOGD",
    "POMDR",
    "REGISTRY",
    "Ahpatron",
    "AhpatronPlus",
    "Alma",
    "Arow",
    "Bogd",
    "BogdPlusPlus",
    "BpaS",
    "BudgetPerceptron",
    "Forgetron",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Learner",
    "LearnerLoadError",
    "LimitReachedError",
    "Linear",
    "Norma",
    "NumericalError",
    "ParameterError",
    "Perceptron",
    "Player",
    "Polk",
    "Polynomial",
    "Projectron",
    "ProjectronPlusPlus",
    "RandomBudgetPerceptron",
    "Silk",
    "SkeGD",
    "Tally",
    "TighterPerceptron",
    "find_learner",
    "learner_source",
    "play",
    "register",
]
