"""The plain NumPy core: kernels, learners and the engine. No I/O, no printing; usable alone.

from ahpatron_cli.core import Ahpatron, Gaussian, play
tally = play(Ahpatron(budget=400), X, y, Gaussian(sigma=0.5)).tally
"""

from ahpatron_cli.core.engine import ALGORITHM, BLOCK, Player, Tally, play
from ahpatron_cli.core.kernels import KERNELS, Gaussian, Kernel, Laplacian, Linear, Polynomial
from ahpatron_cli.core.learners import AVP, REGISTRY, Ahpatron, Learner, Perceptron

__all__ = [
    "ALGORITHM",
    "AVP",
    "BLOCK",
    "KERNELS",
    "REGISTRY",
    "Ahpatron",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Learner",
    "Linear",
    "Perceptron",
    "Player",
    "Polynomial",
    "Tally",
    "play",
]
