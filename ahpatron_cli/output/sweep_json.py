"""The findings of a sweep as plain values, for scripts and spreadsheets.

Field names are the public contract of the formats json, jsonl and csv, as in `records.py`.
"""

from collections.abc import Iterator

from ahpatron_cli import __version__
from ahpatron_cli.records import SCHEMA, Json, data_to_json, plain_params, whole
from ahpatron_cli.sweep.summary import Difference, Findings, Setting, TrialData, TrialRecord


def findings_to_json(findings: Findings) -> Json:
    """The document of `--format json`."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "trials": findings.trials,
        "failed": [_failed(trial) for trial in findings.failed],
        "datasets": [
            {
                "data": data_to_json(found.data.record) | _preparation(found.data),
                "settings": [_setting(setting) for setting in found.settings],
            }
            for found in findings.datasets
        ],
        "origins": [dict(origin) for origin in findings.origins],
    }


def setting_rows(findings: Findings) -> Iterator[Json]:
    """The lines of `--format jsonl`: one per data set and setting."""
    for found in findings.datasets:
        data = {"data": found.data.record.path, "sha256": found.data.record.sha256}
        for setting in found.settings:
            yield data | _preparation(found.data) | _setting(setting)


def flat_setting_rows(findings: Findings) -> Iterator[Json]:
    """The same for csv: the difference in columns of its own; what varied shows in the params."""
    for row in setting_rows(findings):
        del row["varied"]
        difference = row.pop("difference") or dict.fromkeys(Difference.__annotations__)
        yield row | {f"difference_{name}": value for name, value in difference.items()}


def _preparation(data: TrialData) -> Json:
    return {
        "limit": data.limit,
        "scale": data.scale,
        "positive": None if data.positive is None else whole(data.positive),
        "shuffled": data.shuffled,
    }


def _setting(setting: Setting) -> Json:
    summary = setting.summary
    return {
        "learner": setting.learner,
        "params": plain_params(setting.params),
        "varied": plain_params(setting.varied),
        "repeats": summary.repeats,
        "mistake_rate_mean": summary.mistake_rate_mean,
        "mistake_rate_sd": summary.mistake_rate_sd,
        "margin_updates_mean": summary.margin_updates_mean,
        "support_size_mean": summary.support_size_mean,
        "seconds_mean": summary.seconds_mean,
        "best_of_learner": setting.best_of_learner,
        "best_of_data": setting.best_of_data,
        "difference": setting.difference and dict(vars(setting.difference)),
    }


def _failed(trial: TrialRecord) -> Json:
    return {
        "id": trial.id,
        "data": trial.data.record.path,
        "learner": trial.learner,
        "params": plain_params(trial.params),
        "seed": trial.seed,
        "repeat": trial.repeat,
        "error": trial.error,
    }
