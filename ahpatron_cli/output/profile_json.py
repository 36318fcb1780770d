"""The profile of a data file as the document of `inspect DATA --format json`."""

from dataclasses import asdict, fields

from ahpatron_cli import __version__
from ahpatron_cli.profile.advice import advice, next_commands
from ahpatron_cli.profile.profile import Content, Profile
from ahpatron_cli.records import SCHEMA, Json, whole


def profile_to_json(profile: Profile) -> Json:
    """Plain values only; what is not known is null."""
    document = asdict(profile)
    content = document.pop("content") or {field.name: None for field in fields(Content)}
    labels = content["labels"]
    if labels:
        labels["counts"] = [
            {"label": whole(label), "rows": count} for label, count in labels["counts"]
        ]
        for name in ("negative", "positive"):
            labels[name] = None if labels[name] is None else whole(labels[name])
    follows = {"advice": advice(profile), "next": next_commands(profile)}
    return {"schema": SCHEMA, "version": __version__, **document, **content, **follows}
