"""Own kernels, for real: patched, compiled, booted, run beside their base, and what goes wrong.

The object tree is the suite's, of which two files are compiled again; what is built of it is not:
another suite on the same cache neither finds nor removes it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_MISSING, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.kernel.build.cache import OBJECTS, find_kernel
from testbed.kernel.build.pin import DEFAULT_VERSION, read_pin
from testbed.kernel.run import virtual
from testbed.results.folder import read_records
from tests.acceptance.house import House
from wings.kernels.own.build import OWN, find_own
from wings.kernels.own.definition import own_kernels, read_own
from wings.scenarios.spec import Scenario
from wings.scenarios.tests import SCENARIOS
from wings.scenarios.tests.promised import result_of

pytestmark = [pytest.mark.guest, pytest.mark.slow]

# Hunks of unified diffs with the lines around them; patch(1) finds where they belong.
INIT = """\
--- a/net/ipv4/tcp.c
+++ b/net/ipv4/tcp.c
@@ -5293,4 +5293,5 @@
 void __init tcp_init(void)
 {
+\tPLANTED
 \tint max_rshare, max_wshare, cnt;
 \tunsigned long limit;
"""
SENDMSG = """\
--- a/net/ipv4/tcp.c
+++ b/net/ipv4/tcp.c
@@ -1448,4 +1448,5 @@
 \tint ret;
\x20
+\tPLANTED
 \tlock_sock(sk);
 \tret = tcp_sendmsg_locked(sk, msg, size);
"""
DEFAULT = """\
--- a/net/ipv4/tcp_ipv4.c
+++ b/net/ipv4/tcp_ipv4.c
@@ -3459,3 +3459,3 @@
 \tnet->ipv4.sysctl_tcp_reordering = TCP_FASTRETRANS_THRESH;
-\tnet->ipv4.sysctl_tcp_retries1 = TCP_RETR1;
+\tnet->ipv4.sysctl_tcp_retries1 = 4;
 \tnet->ipv4.sysctl_tcp_retries2 = TCP_RETR2;
"""
ADDED = """\
--- a/net/ipv4/Kconfig
+++ b/net/ipv4/Kconfig
@@ -544,4 +544,10 @@
 \t  terrestrial connections.
\x20
+config TCP_CONG_PLANTED
+\tbool "Planted"
+\tdefault y
+\thelp
+\t  Planted by a test.
+
 config TCP_CONG_VEGAS
 \ttristate "TCP Vegas"
--- a/net/ipv4/Makefile
+++ b/net/ipv4/Makefile
@@ -55,2 +55,3 @@
 obj-$(CONFIG_TCP_CONG_HTCP) += tcp_htcp.o
+obj-$(CONFIG_TCP_CONG_PLANTED) += tcp_planted.o
 obj-$(CONFIG_TCP_CONG_VEGAS) += tcp_vegas.o
--- /dev/null
+++ b/net/ipv4/tcp_planted.c
@@ -0,0 +1,2 @@
+// SPDX-License-Identifier: GPL-2.0-only
+#include <net/tcp.h>
"""
SLEEPS = SENDMSG.replace("PLANTED", "usleep_range(1000, 1000);")
MISTAKES = places.ROOT / "kernels" / "mistakes" / "fast-open.patch"
FOUND_BY = {
    1: "syn-with-fin", 2: "cached-cookie", 3: "wrong-cookie", 4: "backup-key", 5: "backup-key",
    6: "window-of-syn", 7: "synack-again", 8: "pending-limit", 9: "pending-limit",
    10: "resets-still-count", 11: "cookie-request", 12: "cookie-of-another-address",
    13: "wrong-cookie", 14: "connect-fast-open", 15: "blackhole-doubles", 16: "fin-out-of-order",
    17: "blackhole-forgotten", 18: "blackhole-after", 19: "reset-out-of-order",
    20: "wrong-cookie", 21: "cached-cookie", 22: "cookie-request-lost", 23: "one-segment",
    24: "synack-again", 25: "cached-cookie", 26: "resets-still-count", 27: "cached-mss",
    28: "unreachable-before-accept", 29: "unreachable-after-accept",
}  # fmt: skip
"""A scenario that finds each mistake in the patch."""
CELLS = ("--only", "page=wikipedia,rtt_ms=20,loss_pct=0", "--jobs", "2")


@pytest.fixture(scope="module")
def acceptance_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XDG_CACHE_HOME with all of the real one's kernels but what is built of own ones."""
    real = places.cache() / "kernels"
    if find_kernel(read_pin(DEFAULT_VERSION), places.cache()) is None:
        pytest.skip("the virtual kernel is not built; run `make kernel`")
    home = tmp_path_factory.mktemp("cache")
    kernels = home / "firstflight" / "kernels"
    kernels.mkdir(parents=True)
    (real / OBJECTS).mkdir(exist_ok=True)  # else the tree would be made anew by each suite
    for path in real.iterdir():
        if path.name != OWN:
            (kernels / path.name).symlink_to(path)
    return home


@pytest.fixture
def at_home(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house with all pages, whose kernels are the test's own; their builds are the module's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(places, "PAGES", places.ROOT / "pages")
    return house


def patch_file(tmp_path: Path, *texts: str) -> str:
    file = tmp_path / "change.patch"
    file.write_text("".join(texts))
    return str(file)


@pytest.mark.nightly
def test_built_in_steps_it_is_the_pinned_kernel_to_the_bit(at_home: House, tmp_path: Path) -> None:
    """After a patched kernel, the same object tree gives what a build from nothing gave."""
    sleeps = patch_file(tmp_path, SLEEPS)
    assert at_home.command("kernel", "add", "patched", "--patch", sleeps)[0] == EXIT_OK
    assert at_home.command("kernel", "add", "plain")[0] == EXIT_OK
    pinned = find_kernel(read_pin(DEFAULT_VERSION), places.cache())
    plain = find_own(read_own("plain", places.data()), places.cache())
    patched = find_own(read_own("patched", places.data()), places.cache())
    assert pinned is not None and plain is not None and patched is not None
    assert plain.binary.read_bytes() == pinned.binary.read_bytes()
    assert patched.binary.read_bytes() != pinned.binary.read_bytes()
    said = at_home.command("kernel", "list")[1]
    assert "patched" in said and "plain" in said
    assert at_home.command("kernel", "remove", "plain")[0] == EXIT_OK
    assert not plain.binary.exists() and patched.binary.exists()


@pytest.mark.nightly
def test_a_millisecond_for_each_segment_is_seen_in_every_cell(
    at_home: House, tmp_path: Path
) -> None:
    mail = tmp_path / "mail.md"
    sleeps = patch_file(tmp_path, SLEEPS)
    words = ("kernel", "try", sleeps, *CELLS, "-n", "1", "--markdown", str(mail))
    code, said = at_home.command(*words)
    assert code == EXIT_OUT_OF_TOLERANCE, said
    assert "Flagged: 2 of 2 cells are slower, or broken." in said
    assert max(map(len, mail.read_text().splitlines())) <= 76


@pytest.mark.nightly
def test_code_that_does_nothing_and_another_default_of_a_sysctl_have_no_effect_on_any_cell(
    at_home: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ends are set to one table of values before each load, and that is said."""
    counts = SENDMSG.replace("PLANTED", "static unsigned long did_nothing; did_nothing++;")
    nothing = patch_file(tmp_path, counts, DEFAULT)
    code, said = at_home.command("kernel", "try", nothing, *CELLS, "--fail-on", "any")
    assert code == EXIT_OK, said
    assert said.count("no effect") == 4  # two cells, the sum, and the answer
    remark = capsys.readouterr().err
    assert "kernel try has net.ipv4.tcp_retries1 '4' by itself" in remark
    assert "--set 'tcp.sysctl.tcp_retries1=" in remark


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("planted", "warning"),
    [("WARN_ON_ONCE(sk->sk_state == TCP_ESTABLISHED);", "WARNING: net/ipv4/tcp.c:"),
     ("if (sk->sk_state == TCP_ESTABLISHED) *(volatile int *)8 = 0;", "Kernel mode fault at")]
)  # fmt: skip
def test_a_kernel_that_warns_or_dies_is_broken_and_says_by_what(
    at_home: House, tmp_path: Path, planted: str, warning: str
) -> None:
    """The lines are those of its console, with the function's name, and in the JUnit file, too."""
    text, junit = SENDMSG.replace("PLANTED", planted), tmp_path / "junit.xml"
    words = ("kernel", "try", patch_file(tmp_path, text), *CELLS, "--junit", str(junit))
    code, said = at_home.command(*words, "--fail-on", "any")
    assert code == EXIT_OUT_OF_TOLERANCE, said
    told = " ".join(said.split())
    assert (
        f"broken by {warning}" in told or f"broken by Kernel panic - not syncing: {warning}" in told
    )
    assert "tcp_sendmsg+0x" in told and "2 broken" in told
    assert warning in junit.read_text()
    code, said = at_home.command(*words, "--fail-on", "none")
    assert (code, "2 broken" in " ".join(said.split())) == (EXIT_OK, True)


@pytest.mark.nightly
def test_what_a_patch_adds_and_does_not_turn_on_is_said(
    at_home: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = at_home.command("kernel", "try", patch_file(tmp_path, ADDED), *CELLS)
    assert code == EXIT_OK
    missed = "net/ipv4/tcp_planted.c is not compiled: CONFIG_TCP_CONG_PLANTED is not set"
    assert missed in capsys.readouterr().err
    assert missed in " ".join(said.split())
    on = ("--config", "CONFIG_TCP_CONG_PLANTED=y")
    assert (
        at_home.command("kernel", "add", "on", "--patch", patch_file(tmp_path, ADDED), *on)[0] == 0
    )
    assert "not compiled" not in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.parametrize(("planted", "words"),
                         [("nonsense();", "does not compile: net/ipv4/tcp.c:"),
                          ('panic("planted");', "does not boot: "),
                          ("for (;;) cpu_relax();", "does not boot: ")])  # fmt: skip
def test_what_does_not_compile_or_boot_is_said_and_not_kept(
    at_home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], planted: str, words: str
) -> None:  # fmt: skip
    if "for (;;)" in planted:  # which ends by this alone; the others come to their own end
        monkeypatch.setattr(virtual, "BOOT_S", 5.0)
    bad = patch_file(tmp_path, INIT.replace("PLANTED", planted))
    assert at_home.command("kernel", "add", "bad", "--patch", bad)[0] == EXIT_MISSING
    said = capsys.readouterr().err
    assert words in said
    if "panic" in planted:
        assert "planted" in said
    assert own_kernels(places.data()) == ()


@pytest.mark.nightly
def test_each_mistake_of_fast_open_breaks_a_promise(at_home: House, tmp_path: Path) -> None:
    """One kernel makes them all, each only where a sysctl says so."""
    assert set(FOUND_BY) == {
        int(n) for n in re.findall(r"tcp_mutated\(.+?, (\d+)\)", MISTAKES.read_text())
    }
    assert at_home.command("kernel", "add", "mistaken", "--patch", str(MISTAKES))[0] == EXIT_OK
    files = []
    for number, name in [*FOUND_BY.items(), *((0, name) for name in {*FOUND_BY.values()})]:
        says = "".join(f"{host} sysctl tcp_fack={number}\n" for host in ("client", "server"))
        text = (SCENARIOS / f"{name}.toml").read_text()
        file = tmp_path / f"{name}-{number}.toml"
        file.write_text(text.replace('steps = """\n', f'steps = """\n{says}'))
        files.append(str(file))
    folder = at_home.folder / "results" / "mistakes"
    words = ("--kernel-version", "mistaken", "-o", str(folder))
    code, said = at_home.command("scenario", *files, *words)
    assert code == EXIT_OUT_OF_TOLERANCE, said
    verdicts = {record.trial.condition_as(Scenario).scenario: result_of(record).verdict
                for record in read_records(folder)}  # fmt: skip
    broken = {f"{name}-{number}" for number, name in FOUND_BY.items()}
    assert {name for name, verdict in verdicts.items() if verdict == "broken"} == broken
    assert len(verdicts) == len(files)
