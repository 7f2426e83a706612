"""Plan of selftests: what is found in a tree, chosen by name, and left out with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.kernels.selftests.plan import Wish, copy_suite, plan
from wings.kernels.selftests.tree import TestTree, first_error


@pytest.fixture
def tree(tmp_path: Path) -> TestTree:
    scripts = tmp_path / "net" / "packetdrill"
    scripts.mkdir(parents=True)
    for name in ("tcp_b.pkt", "tcp_a.pkt", "notes.txt"):
        (scripts / name).write_text("")
    for name in ("tls", "icmp.sh", "amt.sh", "msg.sh"):
        (tmp_path / "net" / name).write_text("./needed --now\n" if name == "msg.sh" else "")
    listed = ("tls", "icmp.sh", "amt.sh", "msg.sh", "gone.sh")
    return TestTree(tmp_path, "source", listed, {"needed": "no such header"}, {})


def names(tree: TestTree, *asked: str, pattern: str | None = None) -> list[str]:
    return [test.name for test in plan(tree, Wish(asked, pattern), has_packetdrill=True)]


def test_all_scripts_and_a_choice_of_the_others_run_by_default(tree: TestTree) -> None:
    assert names(tree) == ["packetdrill/tcp_a.pkt", "packetdrill/tcp_b.pkt", "net/icmp.sh",
                           "net/tls"]  # fmt: skip


def test_names_and_patterns_choose_among_all(tree: TestTree) -> None:
    assert names(tree, "tcp_b", "amt.sh") == ["packetdrill/tcp_b.pkt", "net/amt.sh"]
    assert names(tree, pattern="tcp_*") == ["packetdrill/tcp_a.pkt", "packetdrill/tcp_b.pkt"]
    with pytest.raises(ConfigurationError) as caught:
        names(tree, "tcp_q", pattern="none*")
    assert len(caught.value.problems) == 2
    assert "tcp_q" in caught.value.problems[0]


def test_what_cannot_run_is_left_out_with_the_reason(tree: TestTree) -> None:
    wish = Wish(("tls", "msg.sh", "gone.sh", "tcp_a"))
    why = {t.name: t.left_out for t in plan(tree, wish, has_packetdrill=False)}
    assert "CONFIG_TLS" in why["net/tls"]
    assert why["net/msg.sh"] == "needed: no such header"
    assert why["net/gone.sh"] == "is not in the source"
    assert why["packetdrill/tcp_a.pkt"] == "no packetdrill"
    with_tls = replace(tree, options={"CONFIG_TLS": "y"})
    (test,) = plan(with_tls, Wish(("tls",)), has_packetdrill=True)
    assert test.left_out == ""


def test_a_kernel_without_packetdrill_has_the_others(tree: TestTree, tmp_path: Path) -> None:
    for script in (tmp_path / "net" / "packetdrill").iterdir():
        script.unlink()
    (tmp_path / "net" / "packetdrill").rmdir()
    assert names(tree) == ["net/icmp.sh", "net/tls"]


def test_a_suite_runs_each_script_by_the_versions_of_ip_that_it_has(tmp_path: Path) -> None:
    folder = tmp_path / "tcp"
    (folder / "sack").mkdir(parents=True)
    (folder / "sack" / "any.pkt").write_text("0 socket(...)\n")
    (folder / "sack" / "only-v6.pkt").write_text("")
    (folder / "asked.pkt").write_text("--ip_version=ipv4\n")
    tree = TestTree(tmp_path, "source", (), {}, {})
    tests = {t.name: t for t in plan(tree, Wish(suite=folder), has_packetdrill=True)}
    variants = {name: [c.name for c in test.commands] for name, test in tests.items()}
    assert variants == {"suite/tcp/asked.pkt": ["ipv4"],
                        "suite/tcp/sack/any.pkt": ["ipv4", "ipv6", "ipv4-mapped-ipv6"],
                        "suite/tcp/sack/only-v6.pkt": ["ipv6"]}  # fmt: skip


def test_of_a_suite_what_its_scripts_run_is_copied_and_nothing_beside_it(tmp_path: Path) -> None:
    for name in ("tcp", "common", "secret"):
        (tmp_path / "net" / name).mkdir(parents=True)
    script = tmp_path / "net" / "tcp" / "a.pkt"
    script.write_text("")
    script.chmod(0o600)
    (tmp_path / "net" / "common" / "defaults.sh").write_text("true\n")
    (script.parent / "defaults.sh").symlink_to("../common/defaults.sh")
    place = tmp_path / "copy"
    place.mkdir()
    copy = copy_suite(script.parent, place)
    assert sorted(path.name for path in place.iterdir()) == ["common", "tcp"]
    assert (copy / "defaults.sh").read_text() == "true\n"
    assert (copy / "a.pkt").stat().st_mode & 0o777 == 0o644
    with pytest.raises(ConfigurationError, match=r"no script"):
        copy_suite(tmp_path / "net" / "secret", place)


def test_why_a_program_is_not_there_is_its_first_error() -> None:
    log = "mmap.c:69:10: fatal error: openssl/pem.h: No such file\nmake: *** [lib.mk:1: /x/mmap]\n"
    assert first_error("mmap", log) == "openssl/pem.h: No such file"
    assert first_error("other", log) == "was not compiled"
