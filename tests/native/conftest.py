"""The native programs, as bootstrap compiled them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.wires import Ends, joined
from tests.native.load import Programs, copy_programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return copy_programs(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="module")
def ends() -> Iterator[Ends]:
    """A client's and a server's namespace with a wire, Fast Open without cookies at both ends."""
    with joined("n") as pair:
        for end in pair:
            end.write_sysctls({"net.ipv4.tcp_fastopen": "519"})
        yield pair
