"""The core: kernels, learners and the engine, in NumPy and SciPy only, no I/O; usable as a library.

    from ahpatron_cli.core import Ahpatron, Gaussian, play
    tally = play(Ahpatron(budget=400), X, y, Gaussian(sigma=0.5)).tally

row      an example as in the data: a row of a dense array, or compressed (`CsrRows`)
point    a row in kernel-ready form: scaled by σ, centred if dense, with its squared length
block    up to 64 consecutive rounds whose kernel values are computed together
round    one example: predict with f, see the label, update f if the margin is small
S        the active set: the examples that f is made of; |S| is the support size, B the budget
column   of the open block's table of kernel values: the examples of S, then the rounds
"""

from typing import TYPE_CHECKING

from ahpatron_cli.core.engine import ALGORITHM, BLOCK, Player, play
from ahpatron_cli.core.errors import (
    ColumnError,
    LearnerLoadError,
    LimitReachedError,
    NumericalError,
    ParameterError,
    StateError,
)
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import *  # noqa: F403
from ahpatron_cli.core.kernels import __all__ as _kernels
from ahpatron_cli.core.numerics import HINGE, cancelled, first_smallest, under, up_to
from ahpatron_cli.core.parameters import choice, integer, real
from ahpatron_cli.core.registry import __all__ as _learners
from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.core.span import PrunedExpansion, SpanExpansion
from ahpatron_cli.core.tally import Tally, mistaken, predicted

if TYPE_CHECKING:
    from ahpatron_cli.core.registry import *  # noqa: F403
else:
    from ahpatron_cli.core.registry import (  # noqa: F401
        REGISTRY,
        Learner,
        __getattr__,  # the built-in learners, each imported when it is asked for
        find_learner,
        learner_source,
        register,
    )

# fmt: off
__all__ = [
    "ALGORITHM", "BLOCK", "HINGE", "ColumnError", "CsrRows", "Expansion",
    "LearnerLoadError", "LimitReachedError", "NumericalError", "ParameterError", "Player",
    "PrunedExpansion", "SpanExpansion", "StateError", "Tally", "cancelled", "choice",
    "first_smallest", "integer", "mistaken", "play", "predicted", "real", "under", "up_to",
]
# fmt: on
__all__ += _kernels
__all__ += _learners
