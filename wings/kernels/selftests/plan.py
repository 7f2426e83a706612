"""Plan of selftests: which tests run, each in a guest of its own, and by which commands."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from wings.kernels.selftests.tree import TestTree

SUFFIX = ".pkt"
RUNNER = "ksft_runner.sh"
_COMMON = "common"
CHOSEN = frozenset({
    "bind_bhash.sh", "bind_timewait", "bind_wildcard", "cmsg_time.sh", "getsockopt_iter", "icmp.sh",
    "icmp_rfc4884", "ipv6_flowlabel.sh", "ipv6_flowlabel_mgr", "ipv6_fragmentation",
    "netns-sysctl.sh", "psock_snd.sh", "reuseaddr_conflict", "reuseaddr_ports_exhausted.sh",
    "reuseport_addr_any.sh", "reuseport_bpf", "reuseport_bpf_cpu", "reuseport_dualstack",
    "route_localnet.sh", "run_afpackettests", "run_netsocktests", "rxtimestamp.sh",
    "sk_bind_sendto_listen", "sk_connect_zero_addr", "sk_so_peek_off", "skf_net_off.sh",
    "stress_reuseport_listen.sh", "tcp_fastopen_backup_key.sh", "tcp_port_share", "test_so_rcv.sh",
    "tls", "udp_splice_checksum", "udpgso.sh", "unicast_extensions.sh",
})  # fmt: skip
"""Tests of net, beside packetdrill's scripts, that run where nothing is asked for: of sockets, TCP
and UDP (wings/kernels/docs/selftests.md says what is left out, and why)."""
NEEDS = {"cmsg_ip.sh": "CONFIG_IPV6_MULTIPLE_TABLES",
         "cmsg_so_mark.sh": "CONFIG_IPV6_MULTIPLE_TABLES", "ip_local_port_range.sh": "CONFIG_MPTCP",
         "netns-name.sh": "CONFIG_NETDEVSIM", "so_incoming_cpu": "CONFIG_SMP",
         "tap": "CONFIG_MACVTAP", "tfo_passive.sh": "CONFIG_NETDEVSIM",
         "tls": "CONFIG_TLS"}  # fmt: skip
"""Options without which tests fail rather than say so."""
_IPV4 = ("--local_ip=192.168.0.1", "--gateway_ip=192.168.0.1", "--netmask_ip=255.255.0.0",
         "--remote_ip=192.0.2.1", "-D", "TFO_COOKIE=3021b9d889017eeb",
         "-D", "TFO_COOKIE_ZERO=b7c12350a90dc8f5", "-D", "CODE=host_unreachable")  # fmt: skip
_IPV6 = ("--mtu=1520", "--local_ip=fd3d:0a0b:17d6::1", "--gateway_ip=fd3d:0a0b:17d6:8888::1",
         "--remote_ip=fd3d:fa7b:d17d::1", "-D", "TFO_COOKIE=c1d1e9742a47a9bc",
         "-D", "TFO_COOKIE_ZERO=82af1a8f9a205c34")  # fmt: skip
_LEVEL_4 = ("-D", "CMSG_LEVEL_IP=SOL_IP", "-D", "CMSG_TYPE_RECVERR=IP_RECVERR")
_LEVEL_6 = ("-D", "CMSG_LEVEL_IP=SOL_IPV6", "-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR")
VARIANTS = {"ipv4": ("--ip_version=ipv4", *_IPV4, *_LEVEL_4),
            "ipv6": ("--ip_version=ipv6", *_IPV6, *_LEVEL_6),
            "ipv4-mapped-ipv6": ("--ip_version=ipv4-mapped-ipv6", *_IPV4, *_LEVEL_6)}  # fmt: skip
"""What packetdrill is told for a suite of the user's: as the suites' own runners tell it."""
_OPTION = re.compile(r"^--ip_version=(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestCommand:
    """A command of a test: it says TAP itself, or has the name of what its status decides."""

    argv: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Selftest:
    """One test, which has a guest of its own.

    Attributes:
        name: what reports call it: ``packetdrill/NAME.pkt``, ``net/NAME`` or ``suite/PATH``.
        root: the folder of the host that holds it, which the guest sees a copy of.
        folder: the folder in ``root`` that its commands run in.
        commands: what is run, one after the other.
        left_out: why it is not run; empty: it is.
    """

    name: str
    root: Path
    folder: str
    commands: tuple[TestCommand, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for: names, a pattern, a copy of a suite of the user's own."""

    names: Sequence[str] = ()
    pattern: str | None = None
    suite: Path | None = None


def plan(tree: TestTree, wish: Wish, *, has_packetdrill: bool) -> list[Selftest]:
    """Return the tests to run, in the order of their names; packetdrill's first.

    Those that need packetdrill where there is none, or a program that is not compiled, are in it
    with the reason.

    Raises:
        ConfigurationError: nothing is of a name, matches the pattern, or is in the suite.
    """
    known = [*_scripts(tree), *_others(tree)] if wish.suite is None else _suite(wish.suite)
    default = [test for test in known if not test.name.startswith("net/") or _base(test) in CHOSEN]
    return [
        replace(test, left_out="no packetdrill")
        if test.name.endswith(SUFFIX) and not has_packetdrill else test
        for test in _choose(known, default, wish)
    ]  # fmt: skip


def _choose(known: list[Selftest], default: list[Selftest], wish: Wish) -> list[Selftest]:
    if not wish.names and wish.pattern is None:
        return default
    problems = []
    chosen = set()
    for name in wish.names:
        found = {test.name for test in known if name in _names(test)}
        if not found:
            everything = [other for test in known for other in _names(test)]
            problems.append(f"no test is named {name!r}{did_you_mean(name, everything)}")
        chosen |= found
    if wish.pattern is not None:
        found = {test.name for test in known
                 if any(fnmatchcase(name, wish.pattern) for name in _names(test))}  # fmt: skip
        if not found:
            problems.append(f"--only {wish.pattern}: no test has such a name, as a pattern of sh")
        chosen |= found
    if problems:
        raise ConfigurationError(problems)
    return [test for test in known if test.name in chosen]


def _names(test: Selftest) -> tuple[str, ...]:
    base = _base(test)
    return test.name, base, base.rpartition(".")[0] or base


def _base(test: Selftest) -> str:
    return test.name.rpartition("/")[2]


def _scripts(tree: TestTree) -> list[Selftest]:
    folder = tree.packetdrill
    if folder is None:
        return []
    return [Selftest(f"packetdrill/{script.name}", tree.folder, "net/packetdrill",
                     (TestCommand(("bash", RUNNER, script.name)),))
            for script in sorted(folder.glob(f"*{SUFFIX}"))]  # fmt: skip


def _others(tree: TestTree) -> Iterator[Selftest]:
    for name in sorted(set(tree.listed)):
        file = tree.folder / "net" / name
        why = tree.absent.get(name) or ""
        if not why and file.suffix == ".sh" and file.is_file():
            why = _missing_program(file, tree.absent)
        if not why and not file.is_file():
            why = "is not in the source"
        option = NEEDS.get(name)
        if not why and option and tree.options.get(option, "n") == "n":
            why = f"needs {option}, which this kernel has not: ./run.sh kernel add NAME --config"
        yield Selftest(f"net/{name}", tree.folder, "net", (TestCommand((f"./{name}",)),), why)


def _missing_program(script: Path, absent: Mapping[str, str]) -> str:
    words = set(re.findall(r"[\w.-]+", script.read_text(errors="replace")))
    return next((f"{name}: {why}" for name, why in absent.items() if name in words), "")


def copy_suite(folder: Path, place: Path) -> Path:
    """Copy a suite of the user's into the empty folder ``place``, for guests; return the copy.

    What its scripts run from ../common goes with it, and nothing else that is beside it.

    Raises:
        ConfigurationError: there is no script in it.
    """
    folder = folder.resolve()
    if not any(folder.rglob(f"*{SUFFIX}")):
        raise ConfigurationError(
            [f"{folder}: no script of packetdrill, *{SUFFIX}, is in it or below it; name a folder "
             "such as gtests/net/tcp of packetdrill's source"]
        )  # fmt: skip
    for source in (folder, folder.parent / _COMMON):
        if source.is_dir() and not (place / source.name).exists():
            try:
                shutil.copytree(source, place / source.name)
            except (OSError, shutil.Error) as error:
                raise ConfigurationError(
                    [f"{source} cannot be read: {error}; repair it, or name another folder"]
                ) from None
    for path in (place, *place.rglob("*")):
        runs = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if runs else 0o644)  # a guest that root starts is another user
    return place / folder.name


def _suite(folder: Path) -> list[Selftest]:
    root = folder.parent
    scripts = sorted(folder.rglob(f"*{SUFFIX}"))
    return [_of_suite(script.relative_to(root), root) for script in scripts]


def _of_suite(script: Path, root: Path) -> Selftest:
    asked = _OPTION.findall((root / script).read_text(errors="replace"))
    if asked:
        variants = [name for name in VARIANTS if name in asked]
    elif script.name.endswith("v6.pkt"):
        variants = ["ipv6"]
    elif script.name.endswith("v4.pkt"):
        variants = ["ipv4", "ipv4-mapped-ipv6"]
    else:
        variants = list(VARIANTS)
    start = ("unshare", "-n", "packetdrill", "--send_omit_free")
    commands = tuple(TestCommand((*start, *VARIANTS[name], script.name), name) for name in variants)
    why = "" if commands else f"asks for an --ip_version that is none: {', '.join(asked)}"
    return Selftest(f"suite/{script}", root, str(script.parent), commands, why)
