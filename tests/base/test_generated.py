"""Generated methods of dataclasses: recorded in one process, used in another."""

from __future__ import annotations

import json
import marshal
import sys
from pathlib import Path

import pytest

from testbed.base import generated, proc

KNOWN = """\
from __future__ import annotations
from dataclasses import dataclass, field

@dataclass(frozen=True, slots=True, order=True)
class Segment:
    "A segment."
    start: int
    flags: tuple[str, ...] = ()
    options: list[int] = field(default_factory=list, compare=False)
"""
LATER = """\
from dataclasses import dataclass

@dataclass
class Flow:
    "A flow."
    name: str
"""
IMPORT = """\
import dataclasses, json, sys
from pathlib import Path
from testbed.base import generated
generated.use(Path(sys.argv[1]))
from known import Segment
from later import Flow
one = Segment(1, ("SYN",))
try:
    one.start = 2
    frozen = False
except dataclasses.FrozenInstanceError:
    frozen = True
print(json.dumps({
    "from": [each.__init__.__code__.co_filename for each in (Segment, Flow)],
    "repr": [repr(one), repr(Flow("a"))],
    "frozen": frozen,
    "equal": [one == Segment(1, ("SYN",), [3]), one < Segment(2), hash(one) == hash(Segment(1, ("SYN",)))],
    "types": Segment.__init__.__annotations__["start"],
}))
"""  # noqa: E501
AS_WRITTEN = {
    "repr": ["Segment(start=1, flags=('SYN',), options=[])", "Flow(name='a')"],
    "frozen": True,
    "equal": [True, True, True],
    "types": "int",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "known.py").write_text(KNOWN)
    (tmp_path / "later.py").write_text(LATER)
    python(tmp_path, generated.__file__, str(tmp_path), "known")
    return tmp_path


def python(folder: Path, *words: str) -> str:
    path = f"{Path(generated.__file__).parents[2]}:{folder}"
    return proc.run((sys.executable, "-S", "-B", *words), env={"PYTHONPATH": path}).stdout


def test_recorded_methods_are_the_same_methods(folder: Path) -> None:
    found = json.loads(python(folder, "-c", IMPORT, str(folder)))
    # What was not recorded is compiled as ever.
    assert found.pop("from") == ["<dataclass>", "<string>"]
    assert found == AS_WRITTEN


def test_what_another_python_recorded_is_not_used(folder: Path) -> None:
    file = folder / generated.FILE
    version, pieces = marshal.loads(file.read_bytes())  # noqa: S302
    assert (version, len(pieces) > 5) == (sys.version, True)
    file.write_bytes(marshal.dumps(("another", pieces)))
    found = json.loads(python(folder, "-c", IMPORT, str(folder)))
    assert found.pop("from") == ["<string>", "<string>"]
    assert found == AS_WRITTEN
