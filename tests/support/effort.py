"""How many examples Hypothesis tries: few while developing, more in CI, many over night.

HYPOTHESIS_PROFILE names the profile; without it, it is "ci" where the variable CI is set, and "dev"
elsewhere. "dev" tries the same examples every time: the default run has to say the same of the same
code.
"""

import os

from hypothesis import HealthCheck, settings

_SHARES = {"dev": 0.2, "ci": 1.0, "nightly": 20.0}
_FEWEST = 2
_USUAL = 100


def choose_profile() -> None:
    """Register all profiles and load the one that the environment asks for."""
    for name, share in _SHARES.items():
        settings.register_profile(
            name,
            max_examples=round(_USUAL * share),
            deadline=None,  # a busy machine is no fault
            derandomize=name == "dev",
            print_blob=True,
            # one folder for all examples of a test will do
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        )
    settings.load_profile(_profile())


def examples(number: int) -> settings:
    """So many examples in CI; a fifth of it while developing, twenty times as many over night."""
    return settings(max_examples=max(_FEWEST, round(number * _SHARES[_profile()])))


def _profile() -> str:
    return os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
