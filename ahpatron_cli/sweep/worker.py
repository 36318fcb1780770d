"""What a worker process of a sweep does.

Nothing heavy is imported before the process watches its parent: if that dies while we are still
starting, we must not be left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection


def serve(connection: Connection) -> None:
    """Play the trials that come through the pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from ahpatron_cli.sweep.trial import play

    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(play(task))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
