"""`ahpatron serve`: requests, refusals, limits, signals and the page, at a real server."""

import base64
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.command import REPOSITORY

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

COMMAND = [sys.executable, "-m", "ahpatron_cli", "serve", "--port", "0"]
JSON = {"Content-Type": "application/json"}
PATIENCE = 60


@dataclass
class Served:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {**self.headers, **headers})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        body = json.dumps(document).encode()
        status, answer, _ = self.ask("POST", path, body, **JSON)
        return status, json.loads(answer)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


def started(folder: Path, *options: str, token: str | None = None) -> Served:
    environment = {**os.environ, "AHPATRON_TOKEN": token or ""}
    process = subprocess.Popen(
        [*COMMAND, *options],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"serving on http://\S+:(\d+)/", line):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return Served(process, int(found[1]), headers)
    raise AssertionError(f"it does not serve: {said}")


OPTIONS = ("--label", "fraud", "--id", "payment", "-B", "50")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = started(tmp_path_factory.mktemp("server"), *OPTIONS, "--state", "s.npz")
    served.post("/learn", {"payment": "first", "amount": 1.0, "country": "de", "fraud": 0})
    yield served
    served.process.kill()
    served.process.communicate()


def payments(count: int, seed: int = 0) -> list[dict[str, Any]]:
    generator = random.Random(seed)
    rows = []
    for number in range(count):
        amount = round(generator.gauss(10, 3), 3)
        country = generator.choice(["de", "fr", "it"])
        fraud = int(amount > 12 and country != "de")
        row = {"payment": f"p{number}", "amount": amount, "country": country, "fraud": fraud}
        rows.append(row)
    return rows


def without_label(row: dict[str, Any]) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if name != "fraud"}


# Requests -----------------------------------------------------------------------------------------


def test_the_answers_are_those_of_a_live_run_with_the_same_lines(tmp_path: Path) -> None:
    rows = payments(150)
    lines: list[dict[str, Any]] = []
    found: list[Any] = []
    served = started(tmp_path, *OPTIONS)
    for row in rows[:50]:
        lines.append(row)
        found.append(served.post("/learn", row)[1])
    lines += map(without_label, rows[50:])
    found += served.post("/predict", rows[50:])[1]
    for row in reversed(rows[50:]):
        late = {"payment": row["payment"], "fraud": row["fraud"]}
        lines.append(late)
        found.append(served.post("/label", late)[1])
    served.end()
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    command = [sys.executable, "-m", "ahpatron_cli", "run", "-", *OPTIONS, "--answers", "jsonl"]
    run = subprocess.run(
        command, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=PATIENCE
    )
    expected = list(map(json.loads, run.stdout.splitlines()))
    for answer in [*found, *expected]:
        answer["score"] = round(answer["score"], 9)  # of one row and of many
    assert found == expected


def test_a_label_in_a_row_to_predict_is_not_learned(server: Served) -> None:
    def rounds() -> str:
        text = server.ask("GET", "/metrics")[1].decode()
        return re.findall(r"ahpatron_rounds_total\S+ (\d+)", text)[0]

    before = rounds()
    assert server.post("/predict", {"payment": "a1", "amount": 3, "fraud": 1})[0] == 200
    assert rounds() == before
    assert server.post("/label", {"payment": "a1", "fraud": 1})[1]["label"] == 1
    assert rounds() != before


def test_a_list_is_answered_by_a_list_in_the_same_order(server: Served) -> None:
    rows = [{"payment": f"b{number}", "amount": number} for number in range(300)]
    status, answers = server.post("/predict", rows)
    assert status == 200
    assert [answer["payment"] for answer in answers] == [row["payment"] for row in rows]


def test_a_document_may_have_several_lines(server: Served) -> None:
    body = json.dumps({"payment": "c1", "amount": 3.5}, indent=2).encode()
    status, answer, _ = server.ask("POST", "/predict", body, **JSON)
    assert status == 200
    assert json.loads(answer)["payment"] == "c1"


def test_the_model_is_described_as_by_inspect(server: Served) -> None:
    status, text, _ = server.ask("GET", "/model")
    model = json.loads(text)
    assert status == 200
    assert model["kind"] == "model"
    assert model["learner"] == "metron"


def test_the_requests_of_the_page_are_answered_as_it_shows(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/serve.md").read_text()
    options = re.findall(r"^ahpatron serve (.*)$", page, re.MULTILINE)[0].split()
    shown = re.findall(
        r"^curl --json '(.*)' localhost:8000(\S+)\n```\n\n```\n(.*)\n", page, re.MULTILINE
    )
    assert len(shown) == 2
    served = started(tmp_path, *options)
    found = [served.post(path, json.loads(document)) for document, path, _ in shown]
    served.end()
    assert found == [(200, json.loads(answer)) for _, _, answer in shown]


def test_every_route_is_described(server: Served) -> None:
    document = json.loads(server.ask("GET", "/openapi.json")[1])
    routes = {"/", "/predict", "/learn", "/label", "/health", "/metrics", "/model"}
    assert set(document["paths"]) == routes | {"/openapi.json"}
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", document["info"]["version"])


# Refusals -----------------------------------------------------------------------------------------

ROW = b'{"payment": "x1", "amount": 1}'


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/predict", b"nonsense", 400, "JSON"),
        ("/predict", b"", 400, "JSON"),
        ("/predict", b"[]", 400, "empty"),
        ("/predict", b"[1]", 400, "object"),
        ("/predict", b'"text"', 400, "object"),
        ("/predict", b'{"payment": "y1", "amount": "much"}', 400, "amount"),
        ("/predict", b'{"payment": "y2", "amount": NaN}', 400, "JSON"),
        ("/predict", b'{"payment": "y3", "amount": 1, "amount": 2}', 400, "twice"),
        ("/predict", b'{"payment": "y4", "amount": ' + b"[" * 3000, 400, "JSON"),
        ("/predict", b'{"payment": "\xff"}', 400, "JSON"),
        ("/learn", ROW, 400, "label"),
        ("/label", b'{"payment": "never", "fraud": 1}', 409, "waiting"),
        ("/label", b'{"payment": "never"}', 400, "fraud"),
        ("/label", b'{"fraud": 1}', 400, "payment"),
        ("/label", b'{"payment": "never", "fraud": 1, "amount": 2}', 400, "/learn"),
        ("/nothing", ROW, 404, "Not Found"),
    ],
)
def test_a_request_that_is_at_fault_is_refused_with_a_reason(
    server: Served, path: str, body: bytes, status: int, said: str
) -> None:
    found, answer, headers = server.ask("POST", path, body, **JSON)
    assert found == status
    assert said in json.loads(answer)["error"]
    assert headers["Content-Type"] == "application/json"


def test_an_id_that_is_waiting_already_is_a_conflict(server: Served) -> None:
    row = {"payment": "d1", "amount": 4}
    assert server.post("/predict", row)[0] == 200
    assert server.post("/predict", row)[0] == 409


def test_faulty_rows_of_a_list_are_answered_by_errors_and_the_others_are_learned(
    server: Served,
) -> None:
    rows = [
        {"payment": "e1", "amount": 4},
        {"payment": "e2", "amount": "four"},
        {"payment": "e3", "amount": 5},
    ]
    status, answers = server.post("/predict", rows)
    assert status == 200
    assert [list(answer) == ["error"] for answer in answers] == [False, True, False]


def test_what_is_not_said_to_be_json_is_refused(server: Served) -> None:
    kind = "application/x-www-form-urlencoded"
    assert server.ask("POST", "/predict", ROW, **{"Content-Type": kind})[0] == 415


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: Served) -> None:
    body = b'{"amount": "' + b"x" * (9 << 20) + b'"}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        assert client.recv(64).startswith(b"HTTP/1.1 413 ")


def test_a_body_in_pieces_without_an_end_is_refused(server: Served) -> None:
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        client.sendall(head + b"Content-Type: application/json\r\n\r\n")
        answer = b""
        try:
            for _ in range(9):
                client.sendall(piece)
            answer = client.recv(64)
        except ConnectionError:  # it was closed while we were still sending
            answer = answer or b"HTTP/1.1 413 "
        assert answer.startswith(b"HTTP/1.1 413 ")


def test_headers_that_are_too_large_are_refused(server: Served) -> None:
    assert server.ask("GET", "/model", None, Padding="x" * 40_000)[0] in (400, 431)


def test_a_name_of_another_host_is_refused(server: Served) -> None:
    assert server.ask("GET", "/model", None, Host="example.org")[0] == 403


def test_other_sites_may_not_read_the_answers(server: Served) -> None:
    _, _, headers = server.ask("GET", "/model", None, Origin="https://example.org")
    assert "Access-Control-Allow-Origin" not in headers


def test_an_origin_that_is_allowed_may(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS, "--allow-origin", "https://example.org")
    _, _, headers = served.ask("GET", "/health", None, Origin="https://example.org")
    served.end()
    assert headers["Access-Control-Allow-Origin"] == "https://example.org"


def test_without_ids_no_label_can_come_later(tmp_path: Path) -> None:
    served = started(tmp_path, "--label", "fraud")
    status, answer = served.post("/label", {"payment": "p1", "fraud": 1})
    served.end()
    assert status == 400
    assert "--id" in answer["error"]


# Tokens -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = started(tmp_path_factory.mktemp("guarded"), *OPTIONS, token="secret")
    yield served
    served.process.kill()
    served.process.communicate()


BASIC = base64.b64encode(b"anybody:secret").decode()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("Bearer secret", 200),
        (f"Basic {BASIC}", 200),
        ("", 401),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("Basic %%%", 401),
        ("Digest secret", 401),
    ],
)
def test_a_token_is_required_if_there_is_one(guarded: Served, sent: str, status: int) -> None:
    found, _, headers = guarded.ask("POST", "/predict", ROW, **JSON, Authorization=sent)
    assert found in (status, 409)  # the id may be waiting already
    assert ("WWW-Authenticate" in headers) == (status == 401)


def test_health_needs_no_token(guarded: Served) -> None:
    assert guarded.ask("GET", "/health", None, Authorization="")[0] == 200


def test_other_machines_are_not_served_without_a_token(tmp_path: Path) -> None:
    command = [*COMMAND, *OPTIONS, "--host", "0.0.0.0"]
    environment = {**os.environ, "AHPATRON_TOKEN": ""}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 2
    assert "--token-file" in run.stderr


def test_a_port_that_is_taken_is_refused_with_a_hint(server: Served, tmp_path: Path) -> None:
    command = [*COMMAND[:-1], str(server.port), *OPTIONS]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 73
    assert "--port" in run.stderr


# Signals and states -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_a_signal_saves_everything(tmp_path: Path, number: int, code: int) -> None:
    served = started(tmp_path, *OPTIONS, "--state", "s.npz")
    rows = payments(40)
    served.post("/learn", rows[:30])
    served.post("/predict", rows[30:])
    assert served.end(number)[0] == code
    again = started(tmp_path, "--state", "s.npz")
    row = rows[30]
    status, answer = again.post("/label", {"payment": row["payment"], "fraud": row["fraud"]})
    text = again.ask("GET", "/metrics")[1].decode()
    again.end()
    assert (status, answer["label"]) == (200, row["fraud"])
    assert 'ahpatron_rounds_total{learner="metron"} 31' in text
    assert 'ahpatron_pending{learner="metron"} 9' in text


def test_a_hang_up_is_ignored(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS)
    served.process.send_signal(signal.SIGHUP)
    assert served.post("/learn", payments(1)[0])[0] == 200
    code, err = served.end()
    assert code == 143
    assert "SIGHUP" in err


def test_two_servers_cannot_share_a_state(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS, "--state", "s.npz")
    command = [*COMMAND, *OPTIONS, "--state", "s.npz"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    served.end()
    assert run.returncode == 75


# The page -----------------------------------------------------------------------------------------


def test_the_page_shows_labels_from_outside_as_text(tmp_path: Path) -> None:
    served = started(tmp_path, "--label", "kind", "-B", "20", "--classes", "<b>x</b>,good")
    for number in range(30):
        label = "<b>x</b>" if number % 2 else "good"
        served.post("/learn", {"<i>size</i>": number % 2, "kind": label})
    status, text, headers = served.ask("GET", "/")
    served.end()
    page = text.decode()
    assert status == 200
    assert "<b>x" not in page
    assert "<i>size" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_the_page_needs_nothing_from_elsewhere(server: Served) -> None:
    page = server.ask("GET", "/")[1].decode()
    assert not re.findall(r"(?:src|href)\s*=", page)
    assert "<noscript>" in page


def test_the_page_is_there_before_the_first_row(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS)
    status, text, _ = served.ask("GET", "/")
    served.end()
    assert status == 200
    assert "first row" in text.decode()
