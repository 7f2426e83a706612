"""The command client: its contract, what it is told, and what is kept of it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.client.command import Command, parse_output
from testbed.client.interface import LoadError, LoadOrder, LoadTimeoutError
from testbed.model import KEYS_FILE, Opening
from tests.client.har_model import Har
from tests.client.sites import Site

REQUEST = {"url": "http://www.page.test/", "status": 200, "start_ms": 0, "end_ms": 1.5}
PROGRAM = """\
import json, sys
from pathlib import Path
urls, ca, out, url = sys.argv[1:5]
Path(out, "own.txt").write_text("kept")
Path(out, "client.pcap").write_text("no capture")
Path(out, "link").symlink_to("/etc/passwd")
print("on standard error", file=sys.stderr)
for each in Path(urls).read_text().split():
    print(json.dumps({"url": each, "status": 200, "start_ms": 0, "end_ms": 0.01}))
print("version=7")
print("plt_ms=0.01")
"""


@pytest.fixture
def order(tmp_path: Path) -> LoadOrder:
    site = Site()
    site.add(site.root, b"<p>", "text/html", how="root")
    site.add("http://img.page.test/1.png", b"x", "image/png")
    for name in ("scratch", "out"):
        (tmp_path / name).mkdir()
    return LoadOrder(
        site.archive(), (), False, "none", tmp_path, tmp_path / "scratch", tmp_path / "out", 30.0
    )


def command(order: LoadOrder, program: str, words: str = "", timeout_s: float = 30.0) -> LoadOrder:
    file = order.bundle / "program.py"
    file.write_text(program)
    told = {name: getattr(order, name) for name in order.__dataclass_fields__}
    text = f"{sys.executable} {file} {words}"
    return LoadOrder(**{**told, "command": text, "timeout_s": timeout_s})


def test_a_load(order: LoadOrder) -> None:
    load = Command().load(command(order, PROGRAM, "{urls} {ca} {out} {url}"))
    assert (load.client, load.client_version, load.plt_ms) == ("command", "7", 0.01)
    assert [one.url for one in load.requests] == [one.url for one in order.archive.entries]
    assert (load.missing, load.extra, load.failed) == ((), (), ())
    har = Har.model_validate_json((order.out / "load.har").read_text())
    assert len(har.log.entries) == 2


def test_what_it_leaves_has_names_of_its_own(order: LoadOrder) -> None:
    Command().load(command(order, PROGRAM, "{urls} {ca} {out} {url}"))
    assert sorted(path.name for path in order.out.iterdir()) == [
        "client.log", "client.out", "command-client.pcap", "command-own.txt", "load.har",
    ]  # fmt: skip
    assert (order.out / "client.log").read_text() == "on standard error\n"


def test_its_secrets_have_a_file_where_it_may_make_none(order: LoadOrder) -> None:
    program = PROGRAM + "import os\nopen(os.environ['SSLKEYLOGFILE'], 'a').write('secret\\n')\n"
    told = replace(order, opening=Opening("command", keys=True))
    Command().load(command(told, program, "{urls} {ca} {out} {url}"))
    assert (order.out / KEYS_FILE).read_text() == "secret\n"
    assert (order.out / KEYS_FILE).stat().st_mode & 0o777 == 0o666
    assert order.out.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_was_put_in_place_of_its_own_is_not_read(order: LoadOrder) -> None:
    program = PROGRAM + "import shutil\nshutil.rmtree(out)\nPath(out).symlink_to('/etc')\n"
    Command().load(command(order, program, "{urls} {ca} {out} {url}"))
    assert not list(order.out.glob("command-*"))


@pytest.mark.parametrize(
    ("program", "said"),
    [("raise SystemExit('no such thing')", "ended with status 1: no such thing"),
     ("print('hello')", "line 1 of its standard output, 'hello': not plt_ms="),
     ("pass", "printed no plt_ms=NUMBER on standard output"),
     ("print('plt_ms=1e9')", "and it ran for"),
     ("import sys; sys.stdout.buffer.write(bytes([255]))", "no UTF-8 text")],
)  # fmt: skip
def test_what_fails(order: LoadOrder, program: str, said: str) -> None:
    with pytest.raises(LoadError, match=said):
        Command().load(command(order, program))


def test_what_it_waited_before_it_began_is_no_load_time(order: LoadOrder, tmp_path: Path) -> None:
    began = tmp_path / "began"
    began.write_text(str(time.time_ns() + 3_600_000_000_000))
    with pytest.raises(LoadError, match="plt_ms is 1, and it ran for -"):
        Command().load(command(replace(order, began=began), "print('plt_ms=1')"))


def test_what_does_not_end(order: LoadOrder) -> None:
    with pytest.raises(LoadTimeoutError, match="did not end within"):
        Command().load(command(order, "import time; time.sleep(3600)", timeout_s=0.5))


def test_the_tiny_contract() -> None:
    told = parse_output(
        f"plt_s=0.25\n\n{json.dumps({**REQUEST, 'connection': 'a', 'transfer_bytes': 9})}\n"
    )
    assert (told.plt_ms, told.version) == (250.0, "not told")
    (exchange,) = told.exchanges
    assert (exchange.timing.end_ms, exchange.timing.transfer_bytes) == (1.5, 9)
    assert exchange.timing.connection == "a"


@pytest.mark.parametrize(
    ("line", "said"),
    [("plt_ms=", "not a time above 0"), ("plt_ms=0", "not a time above 0"),
     ("plt_ms=1_0", "not a time above 0"), ("plt_ms=nan", "not a time above 0"),
     ("plt_ms=1\nplt_s=1", "line 2 .* the load time was there already"),
     ("plt=1", "print other words on standard error"), ("{", "not JSON"),
     (json.dumps({**REQUEST, "status": "200"}), "status is not a whole number from 0"),
     (json.dumps({**REQUEST, "start_ms": -1}), "start_ms is not a number from 0"),
     (json.dumps({**REQUEST, "end_ms": 10**400}), "end_ms is not a number from 0"),
     (json.dumps({**REQUEST, "status": True}), "status is not a whole number"),
     (json.dumps({**REQUEST, "start_ms": 2}), "end_ms is before start_ms"),
     (json.dumps({**REQUEST, "code": 1}), "no field is named 'code'; fields: url, status"),
     (json.dumps({"url": 1}), "url is not text; status is missing; start_ms is missing")],
)  # fmt: skip
def test_what_is_no_line_of_it(line: str, said: str) -> None:
    with pytest.raises(LoadError, match=said):
        parse_output(line)
