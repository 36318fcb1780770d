"""What `ahpatron inspect model.npz` says."""

from __future__ import annotations

from ahpatron_cli.cli.shown import Said
from ahpatron_cli.data.labels import describe, show
from ahpatron_cli.models.checkpoint import Keeper, Keeping
from ahpatron_cli.output.escape import literal
from ahpatron_cli.records import plain


def describe_model(path: str) -> Said:
    """The learner, what it was made of and what it has come to; the file is read in full."""
    keeper = Keeper(Keeping(resume=path), lambda text: None)
    model = keeper.model
    assert model is not None
    one = keeper.make_pass(keeper.setup(), path, model.seed, None)
    record = one.result().record
    params = {**model.params, **model.kernel_params}
    kept = "no examples" if record.support_size is None else f"{record.support_size:,} examples"
    lines = [
        f"{literal(path)}: {model.learner}, {model.kernel} kernel, "
        f"by ahpatron {literal(model.version)}",
        f"  rounds     {record.rounds:,}, of which {record.mistakes:,} were mistakes"
        f" ({100 * record.mistake_rate:.2f} %)",
        f"  keeps      {kept}, ‖f‖ = {record.norm:.6g}",
        f"  features   {model.features:,}, computed {'densely' if model.dense else 'sparsely'}",
        f"  labels     {describe(model.labels) or f'{show(-1.0)} and {show(1.0)}'}",
        f"  scaling    {model.scale}",
        f"  seed       {model.seed}",
        "  parameters",
    ]
    lines += [f"    {name:<10} {plain(value)}" for name, value in params.items()]
    return Said("\n".join(lines) + "\n")
