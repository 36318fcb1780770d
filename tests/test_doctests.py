"""Examples in docstrings of public names: they run, and every name has one."""

from __future__ import annotations

import doctest
import importlib

import pytest

NAMES = {
    "ahpatron_cli.core.conversion": ("Conversion",),
    "ahpatron_cli.core.engine": ("Player", "play"),
    "ahpatron_cli.core.kernels": ("Gaussian",),
    "ahpatron_cli.core.learners.base": ("Learner",),
    "ahpatron_cli.core.learners.ahpatron": ("AVP", "Ahpatron", "AhpatronPlus"),
    "ahpatron_cli.core.learners.arow": ("Arow",),
    "ahpatron_cli.core.learners.metron": ("Metron",),
    "ahpatron_cli.core.learners.features": ("FOGD", "NOGD", "SkeGD"),
    "ahpatron_cli.core.learners.gradient": ("BSGD", "Bogd", "BogdPlusPlus", "Norma", "Silk"),
    "ahpatron_cli.core.learners.perceptrons": (
        "Alma",
        "BpaS",
        "BudgetPerceptron",
        "Forgetron",
        "Perceptron",
        "RandomBudgetPerceptron",
        "TighterPerceptron",
    ),
    "ahpatron_cli.core.learners.pomdr": ("POMDR",),
    "ahpatron_cli.core.learners.projections": (
        "KRLS",
        "Polk",
        "Projectron",
        "ProjectronPlusPlus",
    ),
    "ahpatron_cli.core.rows": ("CsrRows",),
    "ahpatron_cli.core.tally": ("predicted",),
    "ahpatron_cli.datasets": ("load_sample",),
    "ahpatron_cli.estimator": ("OnlineKernelClassifier",),
    "ahpatron_cli.river": ("KernelClassifier",),
    "ahpatron_cli.testing": ("check_learner",),
}


@pytest.mark.parametrize("module", NAMES)
def test_examples_in_docstrings_run(module: str) -> None:
    loaded = importlib.import_module(module)
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner()
    examples = {test.name: test for test in finder.find(loaded) if test.examples}
    for name in NAMES[module]:
        assert f"{module}.{name}" in examples, f"{name} has no example"
    for test in examples.values():
        assert runner.run(test).failed == 0
