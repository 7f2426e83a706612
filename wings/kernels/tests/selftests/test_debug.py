"""Debug kernels: the tests of the source come to the same as on plain kernels, part by part."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from testbed.base import places
from wings.kernels.own.definition import define, write_own
from wings.kernels.tests.selftests.drill import write_drill
from wings.kernels.tests.selftests.test_selftests import RECORDS, run

LEAK = """\
--- a/net/ipv4/tcp.c
+++ b/net/ipv4/tcp.c
@@ -420,3 +420,5 @@
 void tcp_init_sock(struct sock *sk)
-{
+{
+	u8 *leaked = kmalloc(200, GFP_ATOMIC);
+	if (leaked) WRITE_ONCE(*leaked, 1);
 NEXT
""".replace("NEXT", "\tstruct inet_connection_sock *icsk = inet_csk(sk);")
TESTS = ("reuseport_dualstack", "sk_connect_zero_addr")


def verdicts(out: Path) -> list[dict[str, Any]]:
    lines = (out / RECORDS).read_text().splitlines()
    return [{name: line[name] for name in ("name", "state", "parts")}
            for line in map(json.loads, lines)]  # fmt: skip


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", ["7.3", "6.1"])
def test_a_debug_kernel_has_the_verdicts_of_the_plain_one(version: str, tmp_path: Path) -> None:
    drill = write_drill(tmp_path / "drill")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "good.pkt").write_text("0 socket(...) = 3\n")
    (suite / "bad.pkt").write_text("--ip_version=ipv6\n\n+0 < FAIL\n")
    words = ("--kernel-version", version, "--packetdrill", str(drill))
    for name, chosen, code in (("tests", TESTS, 0), ("suite", ("--suite", str(suite)), 1)):
        plain, debug = tmp_path / f"{name}-plain", tmp_path / f"{name}-debug"
        assert run(plain, *chosen, *words) == code
        assert run(debug, *chosen, *words, "--debug") == code
        assert verdicts(debug) == verdicts(plain)
    booted = (
        tmp_path / "tests-debug" / "logs" / "net.reuseport_dualstack" / "boot.txt"
    ).read_text()
    assert "Lock dependency validator" in booted
    if version == "7.3":  # 6.1 has it as well, and does not say so
        assert "KernelAddressSanitizer initialized" in booted


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.nightly
def test_memory_that_leaks_fails_a_test_of_a_debug_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    patch = tmp_path / "leak.patch"
    patch.write_text(LEAK)
    leaky = define("leaky", places.data(), base=None, patches=[patch], fragments=(), git=None,
                   revision=None)  # fmt: skip
    write_own(leaky, places.data(), replaced=False)
    words = ("reuseport_dualstack", "--kernel-version", "leaky", "--debug")
    assert run(tmp_path / "debug", *words) == 1
    (verdict,) = map(json.loads, (tmp_path / "debug" / RECORDS).read_text().splitlines())
    assert re.search(r"kmemleak: \d+ bytes leaked, allocated in tcp_init_sock\+", verdict["reason"])
