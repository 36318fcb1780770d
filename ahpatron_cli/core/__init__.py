"""The plain NumPy core: kernels, learners and the engine. No I/O, no printing; usable alone.

    from ahpatron_cli.core import Ahpatron, Gaussian, play
    tally = play(Ahpatron(budget=400), X, y, Gaussian(sigma=0.5)).tally

row      an example as in the data: a row of a dense array, or compressed (`CsrRows`)
point    a row in kernel-ready form: scaled by σ, centred if dense, with its squared length
block    up to 64 consecutive rounds whose kernel values are computed together
round    one example: predict with f, see the label, update f if the margin is small
S        the active set: the examples that f is made of; |S| is the support size, B the budget
column   of the open block's table of kernel values: the examples of S, then the rounds
"""

# `X as X` makes a name public, for type checkers too
from ahpatron_cli.core.engine import ALGORITHM as ALGORITHM
from ahpatron_cli.core.engine import BLOCK as BLOCK
from ahpatron_cli.core.engine import Player as Player
from ahpatron_cli.core.engine import Tally as Tally
from ahpatron_cli.core.engine import play as play
from ahpatron_cli.core.errors import LearnerLoadError as LearnerLoadError
from ahpatron_cli.core.errors import LimitReachedError as LimitReachedError
from ahpatron_cli.core.errors import NumericalError as NumericalError
from ahpatron_cli.core.errors import ParameterError as ParameterError
from ahpatron_cli.core.errors import StateError as StateError
from ahpatron_cli.core.expansion import Expansion as Expansion
from ahpatron_cli.core.kernels import KERNELS as KERNELS
from ahpatron_cli.core.kernels import Gaussian as Gaussian
from ahpatron_cli.core.kernels import Kernel as Kernel
from ahpatron_cli.core.kernels import Laplacian as Laplacian
from ahpatron_cli.core.kernels import Linear as Linear
from ahpatron_cli.core.kernels import Polynomial as Polynomial
from ahpatron_cli.core.learners import AVP as AVP
from ahpatron_cli.core.learners import BSGD as BSGD
from ahpatron_cli.core.learners import FOGD as FOGD
from ahpatron_cli.core.learners import KRLS as KRLS
from ahpatron_cli.core.learners import NOGD as NOGD
from ahpatron_cli.core.learners import POMDR as POMDR
from ahpatron_cli.core.learners import REGISTRY as REGISTRY
from ahpatron_cli.core.learners import Ahpatron as Ahpatron
from ahpatron_cli.core.learners import AhpatronPlus as AhpatronPlus
from ahpatron_cli.core.learners import Alma as Alma
from ahpatron_cli.core.learners import Arow as Arow
from ahpatron_cli.core.learners import Bogd as Bogd
from ahpatron_cli.core.learners import BogdPlusPlus as BogdPlusPlus
from ahpatron_cli.core.learners import BpaS as BpaS
from ahpatron_cli.core.learners import BudgetPerceptron as BudgetPerceptron
from ahpatron_cli.core.learners import Forgetron as Forgetron
from ahpatron_cli.core.learners import Learner as Learner
from ahpatron_cli.core.learners import Norma as Norma
from ahpatron_cli.core.learners import Perceptron as Perceptron
from ahpatron_cli.core.learners import Polk as Polk
from ahpatron_cli.core.learners import Projectron as Projectron
from ahpatron_cli.core.learners import ProjectronPlusPlus as ProjectronPlusPlus
from ahpatron_cli.core.learners import RandomBudgetPerceptron as RandomBudgetPerceptron
from ahpatron_cli.core.learners import Silk as Silk
from ahpatron_cli.core.learners import SkeGD as SkeGD
from ahpatron_cli.core.learners import TighterPerceptron as TighterPerceptron
from ahpatron_cli.core.learners import find_learner as find_learner
from ahpatron_cli.core.learners import learner_source as learner_source
from ahpatron_cli.core.learners import register as register
from ahpatron_cli.core.multiclass import make_player as make_player
from ahpatron_cli.core.multiclass import predicted as predicted
from ahpatron_cli.core.numerics import HINGE as HINGE
from ahpatron_cli.core.numerics import cancelled as cancelled
from ahpatron_cli.core.numerics import first_smallest as first_smallest
from ahpatron_cli.core.numerics import under as under
from ahpatron_cli.core.numerics import up_to as up_to
from ahpatron_cli.core.parameters import choice as choice
from ahpatron_cli.core.parameters import integer as integer
from ahpatron_cli.core.parameters import real as real
from ahpatron_cli.core.rows import CsrRows as CsrRows
from ahpatron_cli.core.span import PrunedExpansion as PrunedExpansion
from ahpatron_cli.core.span import SpanExpansion as SpanExpansion
