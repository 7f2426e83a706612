"""Object trees beside each other: who builds meanwhile gets a spare one, and the same bits."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.base.locks import locked
from testbed.kernel.build import trees
from testbed.kernel.build.objects import is_kept
from testbed.kernel.build.trees import open_tree
from tests.kernel.build.test_objects import Bench
from tests.kernel.small_tree import PATCH


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class Taken(list[str]):
    """The first tree, taken by another until somebody says that they wait for it; what is said."""

    def __init__(self, tree: Path) -> None:
        super().__init__()
        self.held = ExitStack()
        self.held.enter_context(locked(tree / "lock", "", print))

    def append(self, line: str) -> None:
        super().append(line)
        if "waiting for another run" in line:
            self.held.close()


def build_beside(bench: Bench, *texts: str) -> bytes:
    """What is built while another has the first tree."""
    taken = Taken(bench.tree)
    bench.said = taken
    with taken.held:
        return bench.build(*texts)


def test_a_second_build_goes_on_from_a_copy_and_waits_once(bench: Bench) -> None:
    plain, patched = bench.build(), bench.build(PATCH)
    bench.build()
    spare = bench.tree.with_name("objects.2")
    assert not spare.exists()
    assert build_beside(bench, PATCH) == patched
    assert any("copying what was compiled" in line for line in bench.said)
    assert not any("unpacking" in line for line in bench.said)
    compiled = (spare / "source" / "compiled").read_text().split()[1::2]
    assert compiled.count("answer.o") == 1 and "main.o" not in compiled
    assert (spare / "source" / "main.c").samefile(bench.tree / "source" / "main.c")
    assert not (spare / "source" / "main.o").samefile(bench.tree / "source" / "main.o")
    assert "return 7" not in (bench.tree / "source" / "answer.c").read_text()

    assert build_beside(bench) == plain
    assert not any("waiting" in line or "copying" in line for line in bench.said)
    assert bench.build() == plain


def test_without_room_a_build_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = bench.build()
    monkeypatch.setattr(trees, "ROOM_BYTES", 1 << 60)
    assert build_beside(bench) == plain
    assert not (bench.tree.with_name("objects.2") / "source").exists()


def test_a_spare_that_is_not_whole_is_made_anew(bench: Bench) -> None:
    bench.build()
    spare = bench.tree.with_name("objects.2")
    (spare / "source").mkdir(parents=True)
    (spare / "source" / "half").write_text("")
    taken = Taken(bench.tree)
    with taken.held, open_tree(bench.tree, is_kept, "mine", taken.append) as tree:
        assert tree == spare
    assert sum("waiting" in line for line in taken) == 1
    assert is_kept(spare) and not (spare / "source" / "half").exists()
