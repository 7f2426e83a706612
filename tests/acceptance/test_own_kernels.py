"""Own kernels, for real: patched, compiled, booted, run beside their base, and what goes wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_MISSING, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import DEFAULT_VERSION, read_pin
from testbed.kernel.build.source import fetch_source
from testbed.kernel.own.build import find_own, remove_own
from testbed.kernel.own.definition import own_kernels, read_own
from testbed.kernel.run import virtual
from tests.acceptance.house import House

pytestmark = [pytest.mark.guest, pytest.mark.slow]

TCP, IPV4 = "net/ipv4/tcp.c", "net/ipv4/tcp_ipv4.c"
INIT = "void __init tcp_init(void)\n{\n"
SENDMSG = "int tcp_sendmsg(struct sock *sk, struct msghdr *msg, size_t size)\n{\n\tint ret;\n"
CELLS = ("--only", "page=wikipedia,rtt_ms=20,loss_pct=0", "--jobs", "2")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The texts of the files that are patched, as the pinned source has them."""
    folder = tmp_path_factory.mktemp("source")
    fetched = fetch_source(read_pin(DEFAULT_VERSION), places.cache(), print)
    fetched.extract([TCP, IPV4], folder)
    return {name: (folder / name).read_text() for name in (TCP, IPV4)}


@pytest.fixture
def at_home(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house with all pages, whose kernels are the test's own, and gone after it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(places, "PAGES", places.ROOT / "pages")
    yield house
    for name in own_kernels(places.data()):
        remove_own(name, places.data(), places.cache())


def patch_of(
    source: Mapping[str, str], tmp_path: Path, before: str, after: str, name: str = TCP
) -> str:
    """The file of a patch that puts ``after`` in the place of ``before``."""
    text = source[name]
    assert text.count(before) == 1
    old, new = (one.splitlines(keepends=True) for one in (text, text.replace(before, after)))
    file = tmp_path / "change.patch"
    file.write_text("".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")))
    return str(file)


def test_built_in_steps_it_is_the_pinned_kernel_to_the_bit(
    at_home: House, source: Mapping[str, str], tmp_path: Path
) -> None:
    """After a patched kernel, the same object tree gives what a build from nothing gave."""
    sleeps = patch_of(source, tmp_path, SENDMSG, f"{SENDMSG}\n\tusleep_range(1000, 1000);\n")
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


def test_a_patch_that_does_nothing_has_no_effect_on_any_cell(
    at_home: House, source: Mapping[str, str], tmp_path: Path
) -> None:
    counts = f"static unsigned long did_nothing;\n\n{SENDMSG}\n\tdid_nothing++;\n"
    nothing = patch_of(source, tmp_path, SENDMSG, counts)
    code, said = at_home.command("kernel", "try", nothing, *CELLS, "--fail-on", "any")
    assert code == EXIT_OK, said
    assert said.count("no effect") == 3  # two cells, and the sum


def test_a_millisecond_for_each_segment_is_seen_in_every_cell(
    at_home: House, source: Mapping[str, str], tmp_path: Path
) -> None:
    sleeps = patch_of(source, tmp_path, SENDMSG, f"{SENDMSG}\n\tusleep_range(1000, 1000);\n")
    mail = tmp_path / "mail.md"
    code, said = at_home.command("kernel", "try", sleeps, *CELLS, "--markdown", str(mail))
    assert code == EXIT_OUT_OF_TOLERANCE
    assert "Flagged: 2 of 2 cells are slower." in said
    assert max(map(len, mail.read_text().splitlines())) <= 76


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (INIT, f"{INIT}\tnonsense();\n", "does not compile: net/ipv4/tcp.c:"),
        (INIT, f'{INIT}\tpanic("planted");\n', "does not boot: "),
        (INIT, f"{INIT}\tfor (;;)\n\t\tcpu_relax();\n", "does not boot: "),
    ],
)
def test_what_does_not_compile_or_boot_is_said_and_not_kept(
    at_home: House,
    source: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: str,
    after: str,
    words: str,
) -> None:
    if "for (;;)" in after:  # which ends by this alone; the others come to their own end
        monkeypatch.setattr(virtual, "BOOT_S", 5.0)
    bad = patch_of(source, tmp_path, before, after)
    assert at_home.command("kernel", "add", "bad", "--patch", bad)[0] == EXIT_MISSING
    said = capsys.readouterr().err
    assert words in said
    if "panic" in after:
        assert "planted" in said
    assert own_kernels(places.data()) == ()


def test_another_default_of_a_sysctl_is_said_to_have_no_effect(
    at_home: House, source: Mapping[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ends are set to one table of values before each load, whatever the kernel has."""
    other = patch_of(source, tmp_path, "tcp_retries1 = TCP_RETR1;", "tcp_retries1 = 4;", IPV4)
    assert at_home.command("kernel", "add", "other", "--patch", other)[0] == EXIT_OK
    said = capsys.readouterr().err
    assert "kernel other has net.ipv4.tcp_retries1 '4' by itself" in said
    assert "--set 'tcp.sysctl.tcp_retries1=" in said
