"""Stepping into a network namespace and out again, and its sysctls."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.namespace import Namespace
from tests.lab.wires import namespace

THREAD_NAMESPACE = "/proc/thread-self/ns/net"


def here() -> str:
    """The network namespace of this thread."""
    return os.readlink(THREAD_NAMESPACE)  # noqa: PTH115 - it is no path


def test_the_prefix_runs_nothing() -> None:
    assert Namespace("fft").prefix == ("ip", "netns", "exec", "fft")


@pytest.fixture(scope="module")
def inner() -> Iterator[Namespace]:
    with namespace("a") as made:
        yield made


@pytest.mark.root
def test_inside_and_out_again(inner: Namespace) -> None:
    outside = here()
    with inner.entered():
        inside = here()
    assert inside != outside == here()
    said = proc.run((*inner.prefix, "readlink", "/proc/self/ns/net")).stdout
    assert said.strip() == inside


@pytest.mark.root
def test_out_again_after_an_error(inner: Namespace) -> None:
    outside = here()
    with pytest.raises(KeyError), inner.entered():
        raise KeyError
    assert here() == outside


@pytest.mark.root
def test_one_in_another_in_any_thread(inner: Namespace) -> None:
    seen: list[str] = []

    def nest(other: Namespace) -> None:
        with inner.entered():
            seen.append(here())
            with other.entered():
                seen.append(here())
            seen.append(here())
        seen.append(here())

    outside = here()
    with namespace("b") as other:
        nest(other)
        thread = threading.Thread(target=nest, args=(other,))
        thread.start()
        thread.join()
    first, second = seen[:4], seen[4:]
    assert first == second
    assert first[0] == first[2] != first[1]
    assert first[3] == outside


@pytest.mark.root
def test_other_threads_stay_outside(inner: Namespace) -> None:
    seen: list[str] = []
    entered, looked = threading.Event(), threading.Event()

    def look() -> None:
        entered.wait()
        seen.append(here())
        looked.set()

    outside = here()
    thread = threading.Thread(target=look)
    thread.start()
    with inner.entered():
        entered.set()
        looked.wait()
    thread.join()
    assert seen == [outside]


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.root
def test_descriptors_are_closed(inner: Namespace) -> None:
    before = open_descriptors()
    for _ in range(3):
        with inner.entered():
            pass
    assert open_descriptors() == before


def test_a_namespace_that_does_not_exist() -> None:
    outside = here()
    with (
        pytest.raises(FileNotFoundError, match="/run/netns/fft-none"),
        Namespace("fft-none").entered(),
    ):
        pytest.fail("it cannot be entered")
    assert here() == outside


@pytest.mark.root
def test_sysctls_are_those_of_the_namespace(inner: Namespace) -> None:
    name = "net.ipv4.tcp_rmem"
    with namespace("c") as other:
        untouched = other.read_sysctl(name)
        inner.write_sysctls({name: "4096 131072 6291456", "net.ipv4.tcp_fastopen": "519"})
        assert inner.read_sysctl(name) == "4096 131072 6291456"
        assert inner.read_sysctl("net.ipv4.tcp_fastopen") == "519"
        assert other.read_sysctl(name) == untouched


@pytest.mark.root
def test_a_sysctl_that_does_not_exist(inner: Namespace) -> None:
    with pytest.raises(FileNotFoundError, match="tcp_no_such_thing to '1' in namespace fft"):
        inner.write_sysctls({"net.ipv4.tcp_no_such_thing": "1"})


@pytest.mark.root
def test_a_value_that_the_kernel_refuses(inner: Namespace) -> None:
    with pytest.raises(OSError, match="tcp_congestion_control to 'nonsense'"):
        inner.write_sysctls({"net.ipv4.tcp_congestion_control": "nonsense"})
