"""What recordings take: packages of the machine, and the driver that npm builds, once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import MissingError
from wings.pages.recorder import driver
from wings.pages.recorder.driver import find_driver, set_up_recording

NPM = """\
#!/bin/sh
echo "$*" >>{log}
if [ -e {log}.wrong ]; then echo "npm ERR! no network"; exit 1; fi
[ "$1" != run ] || {{ mkdir dist && echo made >dist/record.cjs; }}
"""


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, an npm that notes what it is asked, and packages that are all there."""
    log, program = tmp_path / "log", tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(NPM.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(driver, "ensure_packages", lambda *_asked: None)
    return log


def test_it_is_built_once_from_the_lock_alone(log: Path) -> None:
    assert find_driver() is None
    folder = set_up_recording()
    assert set_up_recording() == find_driver() == folder
    assert folder.is_relative_to(places.cache() / "js")
    install, build = log.read_text().splitlines()
    assert install.startswith("ci --ignore-scripts")
    assert build == "run build"
    assert (folder / "package-lock.json").is_file()


def test_a_damaged_driver_is_built_again(log: Path) -> None:
    folder = set_up_recording()
    (folder / "dist" / "record.cjs").write_text("other")
    assert find_driver() is None
    assert set_up_recording() == folder
    assert (folder / "dist" / "record.cjs").read_text() == "made\n"


def test_one_that_cannot_be_built_shows_why_and_leaves_nothing(log: Path) -> None:
    Path(f"{log}.wrong").touch()
    with pytest.raises(MissingError, match="npm ERR! no network"):
        set_up_recording()
    assert find_driver() is None
    assert [path.name for path in (places.cache() / "js").iterdir()] == ["lock"]


def test_its_packages_are_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(packages: Sequence[str], *_asked: object) -> None:
        raise MissingError(" ".join(packages))

    monkeypatch.setattr(driver, "ensure_packages", refuse)
    with pytest.raises(MissingError, match=r"chromium-headless-shell .* nodejs >= 18 npm"):
        set_up_recording()
