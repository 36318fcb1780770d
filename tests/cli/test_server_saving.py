"""The state of a server, which is saved beside its work: the last save ends all others."""

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from ahpatron_cli.cli.live_saving import SavingBeside
from ahpatron_cli.cli.server.exchange import Exchange
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.data.opening import stream
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.live.monitor import Monitor
from ahpatron_cli.live.service import Service
from ahpatron_cli.live.state_file import StateFile
from support.command import Ahpatron
from support.served import PATIENCE
from support.states import numbers

ROWS = [{"size": number % 7, "kind": "odd" if number % 2 else "even"} for number in range(200)]


class Writer(ThreadPoolExecutor):
    """The thread that writes states; `first` is the first write, which may be done at once."""

    def __init__(self, *, is_fast: bool) -> None:
        super().__init__(1)
        self.first: Future[Any] | None = None
        self._is_fast = is_fast

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        task = super().submit(*arguments, **options)
        if self.first is None:
            self.first = task
            if self._is_fast:
                wait([task])
        return task


def lines(first: int, end: int) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in ROWS[first:end])


def restored(state: StateFile) -> Service:
    """The service of a state, before the next 128 rows."""
    assert state.model is not None
    preparation = Preparation(table=TableOptions(label="kind"))
    source = Source(BytesIO(lines(64, 192)), "requests.jsonl", closes=True)
    dataset = stream(source, preparation, state.model.encoder)
    service = Service(state.model.run("requests.jsonl"), dataset, pending=10, every=[64])
    assert state.model.live is not None
    service.restore(state.model.live)
    return service


def saved_beside(
    service: Service,
    state: StateFile,
    monitor: Monitor,
    exchange: Exchange,
    writer: ThreadPoolExecutor,
) -> SavingBeside:
    assert state.model is not None
    return SavingBeside(
        service,
        service.stream.info,
        state=state,
        save_to=None,
        options=state.model.header.options,
        monitor=monitor,
        stderr=Stderr(),
        lock=exchange.lock,
        writer=writer,
    )


def test_a_state_is_that_of_its_round_although_it_is_written_later(ahpatron: Ahpatron) -> None:
    """What is written is a copy, which the rows learned meanwhile do not change."""
    state_path = str(ahpatron.folder / "s.npz")
    options = ("--label", "kind", "--classes", "even,odd", "-B", "20", "--save-every", 64)
    for stop, path in ((64, state_path), (128, str(ahpatron.folder / "whole.npz"))):
        found = ahpatron("run", "-", *options, "--state", path, stdin=lines(0, stop))
        assert found.code == 0
    exchange = Exchange()
    writer = ThreadPoolExecutor(1)
    may_write = threading.Event()
    writer.submit(may_write.wait)
    monitor = Monitor(None, None, show=print, warn=pytest.fail)
    with StateFile(state_path, None, 64) as state, exchange.lines:
        service = restored(state)
        saving = saved_beside(service, state, monitor, exchange, writer)
        with exchange.lock:
            for batch in service.stream.batches(first_round=64):
                for _ in service.answers(batch):
                    saving.save_if_due()
        assert service.run.rounds == 192
        may_write.set()
        writer.shutdown()
        exchange.close()
    found_numbers = numbers(Path(state_path))
    expected = numbers(ahpatron.folder / "whole.npz")
    differing = {path for path, value in found_numbers.items() if value != expected[path]}
    assert differing <= {"live.counts.lines"}  # which the session counts


@pytest.mark.parametrize("is_fast", [False, True], ids=["later", "at once"])
def test_a_server_ends_although_saves_wait_for_its_lock(ahpatron: Ahpatron, is_fast: bool) -> None:
    """While rows of one request are learned, a state is written, and the note that it is saved
    waits for the lock: so does the next save. Then the server ends, which must not wait for them
    with the lock."""
    state_path = str(ahpatron.folder / "s.npz")
    log = ahpatron.folder / "log.jsonl"
    options = ("--label", "kind", "--classes", "even,odd", "-B", "20", "--state", state_path)
    assert ahpatron("run", "-", *options, stdin=lines(0, 64)).code == 0
    exchange = Exchange()
    writer = Writer(is_fast=is_fast)
    monitor = Monitor(str(log), None, show=print, warn=pytest.fail)
    with StateFile(state_path, None, 64) as state, exchange.lines:
        service = restored(state)
        saving = saved_beside(service, state, monitor, exchange, writer)

        def learn() -> None:
            with exchange.lock:
                for batch in service.stream.batches(first_round=64):
                    for _ in service.answers(batch):
                        saving.save_state()
                        assert writer.first is not None
                        wait([writer.first])
                exchange.close()
                saving.save_last()
                monitor.close()

        learner = threading.Thread(target=learn, daemon=True)
        learner.start()
        learner.join(PATIENCE)
        is_stuck = learner.is_alive()
        if is_stuck:
            exchange.lock.release()  # so that this process can end
        assert not is_stuck
    saved = [json.loads(line)["rounds"] for line in log.read_text().splitlines()]
    assert saved == [128, 192]
    with StateFile(state_path, None, 64) as state:
        assert restored(state).run.rounds == 192
