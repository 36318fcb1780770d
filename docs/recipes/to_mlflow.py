"""Log every trial of a results file as a run of MLflow.

    python to_mlflow.py results.jsonl [EXPERIMENT]

MLFLOW_TRACKING_URI says where to; without it MLflow chooses a place below the current folder.
"""

import sys

import mlflow

import ahpatron_cli


def log(path: str, experiment: str) -> int:
    """Log the successful trials of a results file; returns their number."""
    mlflow.set_experiment(experiment)
    trials = [trial for trial in ahpatron_cli.read_results(path) if trial["status"] == "ok"]
    for trial in trials:
        params = {name: trial[name] for name in ("data", "learner", "seed", "repeat")}
        params |= {
            name.removeprefix("param_"): value
            for name, value in trial.items()
            if name.startswith("param_")
        }
        counts = {
            name: value
            for name, value in trial.items()
            if isinstance(value, int | float) and not name.startswith("param_")
        }
        with mlflow.start_run(run_name=trial["learner"], tags={"trial": trial["id"]}):
            mlflow.log_params(params)
            mlflow.log_metrics(counts)
    return len(trials)


if __name__ == "__main__":
    print(log(sys.argv[1], (sys.argv[2:] or ["ahpatron"])[0]), "trials logged")
