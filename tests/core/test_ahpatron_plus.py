"""ahpatron+ is Ahpatron in one composition, and nothing else."""

import math

import numpy as np

from ahpatron_cli.core import REGISTRY, Ahpatron, Gaussian, Player
from ahpatron_cli.core.learners import AhpatronPlus
from support.streams import make_stream


def test_the_defaults_are_those_of_the_definition() -> None:
    for budget in (2, 150, 400):
        assert AhpatronPlus(budget=budget).params() == {
            "budget": budget,
            "epsilon": 0.75,
            "radius": math.sqrt(budget),
            "step": 0.25,
            "schedule": "adaptive",
            "ridge": 0.0005,
            "selection": "nearest",
            "rescale": "keep",
            "multiclass": "rest",
        }
    assert list(AhpatronPlus.specs()) == list(Ahpatron.specs())
    assert next(iter(REGISTRY)) == "ahpatron", "the default learner stays the paper's"


def test_spelt_out_it_is_ahpatron_bit_by_bit() -> None:
    stream = make_stream(seed=6, rounds=600, features=3)
    plus = Player(AhpatronPlus(budget=24), Gaussian(sigma=0.7))
    spelt_out = Player(Ahpatron(**AhpatronPlus(budget=24).params()), Gaussian(sigma=0.7))
    np.testing.assert_array_equal(plus.feed(stream.X, stream.y), spelt_out.feed(stream.X, stream.y))
    assert plus.learner.statistics() == spelt_out.learner.statistics()
    assert plus.learner.statistics()["halvings"] != 0
