"""Let Optuna choose σ and ε of `ahpatron`, by the mean mistake rate over three permutations.

    python tune_optuna.py data.svm [TRIALS]

The values are chosen on these permutations; their mistake rate is too low as an estimate.
Run them on other permutations, with --seed 1, for an unbiased one.
"""

import json
import subprocess
import sys

import optuna


def mistake_rate(path: str, sigma: float, epsilon: float) -> float:
    """Mean mistake rate over three permutations, computed by `ahpatron run`."""
    command = [sys.executable, "-m", "ahpatron_cli", "run", path, "--repeats", "3", "--quiet"]
    command += ["--sigma", str(sigma), "--epsilon", str(epsilon), "--format", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["summary"][0]["mistake_rate_mean"])


def tune(path: str, trials: int) -> optuna.Study:
    """An Optuna study with this number of trials."""

    def objective(trial: optuna.Trial) -> float:
        sigma = trial.suggest_float("sigma", 0.05, 20, log=True)
        epsilon = trial.suggest_float("epsilon", 0.05, 0.95)
        return mistake_rate(path, sigma, epsilon)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=trials)
    return study


if __name__ == "__main__":
    found = tune(sys.argv[1], int((sys.argv[2:] or ["30"])[0]))
    print(f"{100 * found.best_value:.2f} % with {found.best_params}")
