"""The enclosure's command, and what a caller without privileges is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import EXIT_MISSING, MissingError
from testbed.kernel.run.enclosure import (
    BPF_FACTS,
    CAPABILITIES,
    ORPHANED,
    OWN_SYSCTLS,
    EnclosureFiles,
    confined_argv,
    enclosure_argv,
    parse_capabilities,
    require_privileges,
)

ALL = "Name:\tx\nCapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\n"
NONE = "Name:\tx\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
GIVEN = EnclosureFiles(Path("/b"), Path("/r"), Path("/p"), Path("/o"), Path("/opt/chrome"))


def options(argv: tuple[str, ...], name: str) -> list[tuple[str, ...]]:
    """The two words after each ``name``."""
    return [argv[i + 1 : i + 3] for i, word in enumerate(argv) if word == name]


def test_only_out_can_be_written() -> None:
    argv = enclosure_argv(GIVEN, {"PATH": "/usr/bin"})
    assert options(argv, "--bind") == [(OWN_SYSCTLS, OWN_SYSCTLS), ("/o", "/ff/out")]
    sealed = {target for _, target in options(argv, "--ro-bind-try")}
    assert {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"} <= sealed
    assert {(path, path) for path in BPF_FACTS} <= set(options(argv, "--ro-bind-try"))
    read_only = {target: source for source, target in options(argv, "--ro-bind")}
    assert read_only["/ff/bundle"] == "/b"
    assert read_only["/ff/page"] == "/p"
    assert read_only["/opt/chrome"] == "/opt/chrome"
    assert "/home" not in read_only and "/" not in read_only
    assert options(argv, "--setenv") == [("PATH", "/usr/bin")]


def test_it_ends_with_its_parent_and_shares_no_namespace() -> None:
    argv = enclosure_argv(EnclosureFiles(Path("/b"), Path("/r")), {})
    for word in ("pid", "net", "ipc", "uts"):
        assert f"--unshare-{word}" in argv
    assert "--die-with-parent" in argv
    assert "--clearenv" in argv
    assert "/ff/page" not in argv


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes an enclosure")
def test_nothing_begins_in_an_enclosure_whose_harness_is_gone(tmp_path: Path) -> None:
    (tmp_path / "etc" / "fonts").mkdir(parents=True)
    enclosure = enclosure_argv(EnclosureFiles(tmp_path, Path("/usr")), {"PATH": "/usr/bin"})

    def run(harness_lives: bool) -> tuple[int, str]:
        told, alive, held = os.open("/dev/null", os.O_WRONLY), *os.pipe()
        try:
            if not harness_lives:
                os.close(held)
            argv = confined_argv((*enclosure, "echo", "begun"), told, alive)
            done = proc.run(argv, check=False, pass_fds=(told, alive))
            return done.returncode, done.stdout
        finally:
            for descriptor in (told, alive, *((held,) if harness_lives else ())):
                os.close(descriptor)

    assert run(harness_lives=True) == (0, "begun\n")
    assert run(harness_lives=False) == (ORPHANED, "")


def test_it_keeps_no_more_capabilities_than_are_named() -> None:
    argv = enclosure_argv(GIVEN, {})
    kept = {word for word, _ in options(argv, "--cap-add")}
    assert ("ALL", "--cap-add") in options(argv, "--cap-drop")
    assert kept == {*CAPABILITIES, "CAP_SYS_NICE"}
    assert "CAP_SYS_MODULE" not in kept


def test_root_may() -> None:
    require_privileges(0, ALL)
    assert parse_capabilities(ALL) == ()


def test_a_user_is_reported_to_use_sudo_or_the_virtual_kernel() -> None:
    with pytest.raises(MissingError) as error:
        require_privileges(1000, NONE)
    assert error.value.exit_code == EXIT_MISSING
    for words in ("user 1000 is not root", "sudo", "--kernel virtual"):
        assert words in str(error.value)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_root_of_a_container_is_reported_what_is_missing(name: str) -> None:
    bit, reason = CAPABILITIES[name]
    status = f"CapEff:\t{(1 << 41) - 1 & ~(1 << bit):016x}\n"
    assert parse_capabilities(status) == (f"{name} ({reason})",)
    with pytest.raises(MissingError, match=name):
        require_privileges(0, status)
