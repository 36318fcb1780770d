"""The `ahpatron` command, also as `python -m ahpatron_cli`.

Signal handlers are installed before large imports: otherwise Ctrl-C during the import of Typer
would print a traceback.
"""

from __future__ import annotations

from typing import NoReturn

from ahpatron_cli.signals import leave_at_once_on_signals


def main() -> NoReturn:
    """Entry point of the `ahpatron` command."""
    leave_at_once_on_signals()
    from ahpatron_cli.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
