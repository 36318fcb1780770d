"""`ahpatron serve`: requests, refusals, limits, signals and the page, at a real server."""

import base64
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.command import REPOSITORY
from support.served import COMMAND, JSON, PATIENCE, Served, started

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

OPTIONS = ("--label", "fraud", "--id", "payment", "-B", "50")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = started(tmp_path_factory.mktemp("server"), *OPTIONS, "--state", "s.npz")
    served.post("/learn", {"payment": "first", "amount": 1.0, "country": "de", "fraud": 0})
    yield served
    served.process.kill()
    served.process.communicate()


@pytest.fixture(scope="module")
def labelled(server: Served) -> Served:
    """The server, which knows that the labels are 0 and 1."""
    server.post("/learn", {"payment": "second", "amount": 20.0, "country": "fr", "fraud": 1})
    return server


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


def test_the_answer_is_null_as_long_as_no_label_is_known(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS)
    first = served.post("/predict", {"payment": "a", "amount": 3})[1]
    assert served.ask("GET", "/")[0] == 200
    late = served.post("/label", {"payment": "a", "fraud": 1})[1]
    second = served.post("/predict", {"payment": "b", "amount": 3})[1]
    served.end()
    assert (first["prediction"], first["score"]) == (None, None)
    assert (late["prediction"], late["mistake"]) == (None, 1)
    assert second["prediction"] == 1


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


@pytest.mark.parametrize("path", ["/predict", "/learn", "/label"])
def test_every_answer_is_described(server: Served, path: str) -> None:
    """Each status is one of its path, and an object has the fields of its schema."""
    document = json.loads(server.ask("GET", "/openapi.json")[1])
    described = document["paths"][path]["post"]["responses"]
    schemas = document["components"]["schemas"]
    row = {"payment": f"o{path}", "amount": 1, "fraud": 1}
    bodies = [row, [row], {**row, "amount": "x"}, [1], "x", [{}] * 10_001, {"payment": "o"}]
    bodies += [{"payment": "never", "fraud": 1}]
    found = [server.ask("POST", path, json.dumps(body).encode(), **JSON) for body in bodies]
    found.append(server.ask("POST", path, b"{", **JSON))
    found.append(server.ask("POST", path, ROW))
    found.append(server.ask("POST", path, ROW, **JSON, Host="example.org"))
    statuses = {status for status, _, _ in found}
    assert {400, 403, 413, 415} < statuses <= set(map(int, described))
    for status, text, _ in found:
        answer = json.loads(text)
        schema = schemas["Answer" if status == 200 else "Error"]
        for one in answer if isinstance(answer, list) else [answer]:
            if "error" in one:
                schema = schemas["Error"]
            assert set(schema["required"]) <= set(one)
            assert set(one) - {"payment"} <= set(schema["properties"])


def test_long_headers_are_described_for_every_route_that_refuses_them(server: Served) -> None:
    document = json.loads(server.ask("GET", "/openapi.json")[1])
    refused = set()
    for path, methods in document["paths"].items():
        (method,) = methods
        status, _, _ = server.ask(method.upper(), path, None, Padding="x" * 17_000)
        if status == 431:
            refused.add(path)
    described = {
        path
        for path, methods in document["paths"].items()
        for described in methods.values()
        if "431" in described["responses"]
    }
    assert refused == described
    assert len(refused) > 3


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
        ("/learn", ROW, 400, "fraud"),
        ("/learn", b'{"payment": "x1", "amount": 1, "fraud": [1]}', 400, "single"),
        ("/learn", b'{"payment": "x1", "amount": 1, "fraud": " NA "}', 400, "missing"),
        ("/label", b'{"payment": "never", "fraud": 1}', 409, "waiting"),
        ("/label", b'{"payment": "never"}', 400, "fraud"),
        ("/label", b'{"fraud": 1}', 400, "payment"),
        ("/label", b'{"payment": "never", "fraud": {"a": 1}}', 400, "single"),
        ("/label", b'{"payment": "never", "fraud": 1, "amount": 2}', 400, "/learn"),
        ("/nothing", ROW, 404, "/openapi.json"),
        ("/health", ROW, 405, "GET"),
    ],
)
def test_a_request_that_is_at_fault_is_refused_with_a_reason(
    server: Served, path: str, body: bytes, status: int, said: str
) -> None:
    found, answer, headers = server.ask("POST", path, body, **JSON)
    assert found == status
    assert said in json.loads(answer)["error"]
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "document", "field"),
    [
        ("/predict", b'{"payment": "f1", "amount": "much"}', "amount"),
        ("/predict", b'{"payment": "f2", "amount": [1, "x"]}', "amount"),
        ("/predict", b'{"payment": ["f3"], "amount": 1}', "payment"),
        ("/predict", b'{"payment": "f4", "amount": 1, "amount": 1}', "amount"),
        ("/predict", b'{"payment": "f5", "amount": 1' + b"0" * 400 + b"}", "amount"),
        ("/predict", b'{"payment": "f6", "a.b": 1, "a": {"b": 1}}', "a.b"),
        ("/predict", b'{"payment": "f7", "country": "de", "amount": -1e200}', "amount"),
        ("/learn", b'{"payment": "f7", "country": "de", "amount": 1e200, "fraud": 1}', "amount"),
        ("/learn", b'{"payment": "f7", "amount": 1, "fraud": 2}', "fraud"),
        ("/learn", b'{"payment": "f8", "amount": 1, "fraud": null}', "fraud"),
        ("/label", b'{"payment": "f9"}', "fraud"),
        ("/label", b'{"payment": "f9", "fraud": 1, "amount": 1}', "amount"),
    ],
)
def test_an_error_names_the_field_and_the_row(
    labelled: Served, path: str, document: bytes, field: str
) -> None:
    status, answer, _ = labelled.ask("POST", path, document, **JSON)
    assert status == 400
    error = json.loads(answer)
    assert error["error"]
    assert (error["field"], error["row"]) == (field, 0)


def test_an_id_that_is_waiting_already_is_a_conflict(server: Served) -> None:
    row = {"payment": "d1", "amount": 4}
    assert server.post("/predict", row)[0] == 200
    status, error = server.post("/predict", row)
    assert (status, error["field"], error["row"]) == (409, "payment", 0)


def test_a_label_of_no_row_that_waits_is_a_conflict_in_the_id(server: Served) -> None:
    status, error = server.post("/label", [{"payment": "d2", "fraud": 1}])
    assert (status, error[0]["field"], error[0]["row"]) == (200, "payment", 0)
    status, error = server.post("/label", {"payment": "d2", "fraud": 1})
    assert (status, error["field"], error["row"]) == (409, "payment", 0)


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
    assert ["error" in answer for answer in answers] == [False, True, False]
    assert (answers[1]["row"], answers[1]["field"]) == (1, "amount")


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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.example.org"])
def test_other_machines_are_not_served_without_a_token(tmp_path: Path, host: str) -> None:
    command = [*COMMAND, *OPTIONS, "--host", host]
    environment = {**os.environ, "AHPATRON_TOKEN": ""}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 2
    assert "--token-file" in run.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--log", "none/l.jsonl"), 73),
        (("--rejects", "none/r.jsonl"), 73),
        (("--prometheus", "none/f.prom"), 73),
        (("--state", "none/s.npz"), 73),
        (("--allow-origin", "shop.example"), 2),
        (("--allow-origin", "https://shop.example/"), 2),
        (("--token-file", "none"), 66),
    ],
)
def test_a_file_or_an_origin_that_cannot_be_is_refused(
    tmp_path: Path, options: tuple[str, str], code: int
) -> None:
    command = [*COMMAND, *OPTIONS, *options]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == code
    assert options[1] in run.stderr
    assert "Traceback" not in run.stderr


def test_a_token_may_be_any_bytes(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS, token=os.fsdecode(b"\xffsecret"))
    sent = "Bearer " + b"\xffsecret".decode("latin-1")
    assert served.ask("GET", "/openapi.json", None, Authorization=sent)[0] == 200
    assert served.ask("GET", "/openapi.json", None, Authorization="Bearer secret")[0] == 401
    served.end()


def test_a_port_that_is_taken_is_refused_with_a_hint(server: Served, tmp_path: Path) -> None:
    command = [*COMMAND[:-1], str(server.port), *OPTIONS]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 73
    assert "--port" in run.stderr


@pytest.mark.parametrize("state", [(), ("--state", "misspelt.npz")], ids=["none", "new"])
def test_a_new_learner_needs_the_name_of_the_label(tmp_path: Path, state: tuple[str, ...]) -> None:
    command = [*COMMAND, *state]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 2
    assert "--label" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_faulty_first_row_is_refused_at_once(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS)
    status, error = served.post("/learn", {"payment": "f", "amount": [1, "x"], "fraud": 1})
    assert (status, error["field"]) == (400, "amount")
    assert served.post("/learn", payments(2))[0] == 200
    served.end()


def test_a_state_that_is_new_is_noted(tmp_path: Path) -> None:
    options = (*OPTIONS, "--state", "misspelt.npz")
    first = started(tmp_path, *options)
    first.post("/learn", payments(2))
    assert "misspelt.npz" in first.said
    first.end()
    second = started(tmp_path, *options)
    assert "misspelt.npz" not in second.said
    second.end()


def test_an_address_of_another_machine_is_refused_with_a_hint(tmp_path: Path) -> None:
    command = [*COMMAND, *OPTIONS, "--host", "192.0.2.1"]  # of documentation, so of no machine
    environment = {**os.environ, "AHPATRON_TOKEN": "secret"}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 73
    assert "--host" in run.stderr
    assert "--port" not in run.stderr


# Rows that the learner needs before its first answer ----------------------------------------------


@pytest.mark.parametrize("option", ["--scale=standard", "--missing=mean", "--warm-up=100"])
def test_what_would_wait_for_the_first_rows_is_refused(tmp_path: Path, option: str) -> None:
    """Requests that wait would fill the queue, and keep out the rows that they wait for."""
    options = ("--label", "fraud", "-B", "50", "--state", "s.npz", option)
    if not option.startswith("--warm-up"):
        options += ("--warm-up", "100")
    rows = [{**row, "payment": None} for row in payments(101)]
    served = started(tmp_path, *options)
    status, error = served.post("/predict", without_label(rows[0]))
    assert (status, "100" in error["error"]) == (503, True)
    assert served.post("/learn", rows[:99])[0] == 503
    assert served.post("/learn", rows[:100])[0] == 200
    assert served.post("/predict", without_label(rows[100]))[0] == 200
    served.end()
    again = started(tmp_path, *options)
    assert again.post("/predict", without_label(rows[100]))[0] == 200
    again.end()


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


def test_the_time_that_a_save_beside_the_rows_takes_is_logged(tmp_path: Path) -> None:
    served = started(
        tmp_path, *OPTIONS, "--state", "s.npz", "--save-every", "64", "--log", "l.jsonl"
    )
    began = time.perf_counter()
    served.post("/learn", payments(64))
    served.end()
    taken = time.perf_counter() - began
    events = map(json.loads, (tmp_path / "l.jsonl").read_text().splitlines())
    saved = [event for event in events if event["event"] == "saved"]
    assert saved
    assert all(0 <= event["seconds"] <= taken for event in saved)


def test_figures_and_model_of_a_state_are_there_before_the_first_row(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS, "--state", "s.npz")
    served.post("/learn", payments(30))
    served.end()
    again = started(tmp_path, *OPTIONS, "--state", "s.npz")
    assert again.figure("rounds_total") == 30
    assert json.loads(again.ask("GET", "/model")[1])["data"]["rounds"] == 30
    assert "Mistakes, all rounds" in again.ask("GET", "/")[1].decode()
    again.end()


def test_a_server_that_nobody_has_asked_ends_as_others_do(tmp_path: Path) -> None:
    served = started(tmp_path, *OPTIONS, "--state", "s.npz")
    code, err = served.end()
    assert code == 143
    assert "error" not in err


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


# Behind a proxy -----------------------------------------------------------------------------------

NGINX = shutil.which("nginx")
CONFIGURATION = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port};
{lines}
    }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture
def proxied(tmp_path: Path, guarded: Served) -> Iterator[Served]:
    """The server with a token, behind nginx with the lines of the documentation."""
    assert NGINX is not None
    page = (REPOSITORY / "docs/serve.md").read_text()
    (lines,) = re.findall(r"^```nginx\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = lines.replace("127.0.0.1:8000", f"127.0.0.1:{guarded.port}")
    port = free_port()
    (tmp_path / "nginx.conf").write_text(CONFIGURATION.format(port=port, lines=lines))
    command = [NGINX, "-p", str(tmp_path), "-c", "nginx.conf", "-e", "stderr"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as nginx:
        served = Served(nginx, port, guarded.headers)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                served.ask("GET", "/learner/health")
                break
            except ConnectionError:
                assert nginx.poll() is None, nginx.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield served
        nginx.terminate()


@pytest.mark.slow
@pytest.mark.skipif(not NGINX, reason="no proxy to put in front: apt-get install nginx")
def test_the_lines_for_nginx_pass_everything_on(proxied: Served) -> None:
    row = {"payment": "behind", "amount": 5}
    assert proxied.post("/learner/predict", row)[0] == 200
    assert proxied.post("/learner/label", {"payment": "behind", "fraud": 1})[0] == 200
    status, page, headers = proxied.ask("GET", "/learner/")
    assert status == 200
    assert b"ahpatron" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert proxied.ask("GET", "/learner/model", None, Authorization="")[0] == 401
    rows = [{"payment": f"m{number}", "note": "x" * 1000} for number in range(7000)]
    status, answers = proxied.post("/learner/predict", rows)
    assert (status, len(answers)) == (200, 7000)
    assert proxied.ask("POST", "/learner/predict", b" " * (9 << 20), **JSON)[0] == 413


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
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_shows_the_ten_most_relevant_columns_in_their_order(tmp_path: Path) -> None:
    served = started(tmp_path, "--label", "y", "-B", "50")
    draw = random.Random(3)
    rows = []
    for _ in range(300):
        row: dict[str, Any] = {f"noise{column}": draw.random() for column in range(12)}
        row["decides"] = draw.random()
        row["y"] = int(row["decides"] > 0.5)
        rows.append(row)
    served.post("/learn", rows)
    page = served.ask("GET", "/")[1].decode()
    served.end()
    part = page.partition("Relevant columns")[2].partition("</table>")[0]
    names = re.findall(r'<th scope="row">(.*?)</th>', part)
    shares = [float(share) for share in re.findall(r">([\d.]+) %<", part)]
    assert names[0] == "decides"
    assert shares == sorted(shares, reverse=True)
    assert len(names) == len(shares) == 10


@pytest.mark.parametrize(
    ("state", "said"),
    [(["--state", "s.npz"], "state in s.npz"), ([], "no --state: nothing is saved")],
    ids=["state", "none"],
)
def test_the_page_says_where_the_state_is_saved(
    tmp_path: Path, state: list[str], said: str
) -> None:
    served = started(tmp_path, *OPTIONS, *state)
    served.post("/learn", payments(2))
    page = served.ask("GET", "/")[1].decode()
    served.end()
    assert f"; {said}</p>" in page


def test_the_page_says_how_many_labels_it_leaves_out(tmp_path: Path) -> None:
    served = started(tmp_path, "--label", "kind", "-B", "20")
    served.post("/learn", [{"size": number, "kind": f"k{number % 25}"} for number in range(60)])
    page = served.ask("GET", "/")[1].decode()
    served.end()
    assert "The 20 most frequent of 25<" in page
    assert "most relevant of" not in page


def test_the_page_says_how_many_rounds_the_window_has(tmp_path: Path) -> None:
    """After the beginning with a model of a table, it has none."""
    served = started(tmp_path, *OPTIONS, "--window", "20")
    served.post("/learn", payments(7))
    few = served.ask("GET", "/")[1].decode()
    served.post("/learn", payments(30)[7:])
    many = served.ask("GET", "/")[1].decode()
    served.end()
    assert "Mistakes, last 7<" in few
    assert "Mistakes, last 20<" in many


def test_the_page_says_when_the_state_was_saved_last(tmp_path: Path) -> None:
    options = (*OPTIONS, "--state", "s.npz")
    served = started(tmp_path, *options)
    served.post("/learn", payments(2))
    served.end()
    saved = datetime.fromtimestamp((tmp_path / "s.npz").stat().st_mtime)
    again = started(tmp_path, *options)
    page = again.ask("GET", "/")[1].decode()
    again.end()
    assert f"; state in s.npz, saved last {saved:%Y-%m-%d %H:%M:%S}</p>" in page


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
