"""The kernel cache: what is built once, found again, refused, and left behind by a failure."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.errors import MissingError
from testbed.base.interrupt import SIGNALS
from testbed.base.places import ROOT
from testbed.kernel.build import cache as build
from testbed.kernel.build import compiler
from testbed.kernel.build.patches import PatchError
from testbed.kernel.build.toolchain import read_name
from tests.kernel.small_pin import PATCH, make_pin


def silent(message: str) -> None:
    assert message


def test_built_once_and_found_again(tmp_path: Path) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    assert build.find_kernel(pin, cache) is None
    made = build.ensure_kernel(pin, cache, 1, silent)
    again = build.ensure_kernel(pin, cache, 1, lambda message: pytest.fail(message))
    assert again == made == build.find_kernel(pin, cache)
    assert made.boot == pin.boot
    assert made.binary.parent == build.build_folder(pin, cache)
    assert made.identity.binary_sha256 == file_sha256(made.binary)
    assert made.identity.patches == {"0001.patch": file_sha256(tmp_path / "0001.patch")}
    assert made.identity.source_sha256 == pin.tarball_sha256
    left = sorted(path.name for path in made.binary.parent.iterdir())
    assert left == ["System.map", "build.json", "build.log", "linux"]


def test_the_patch_is_in_the_binary(tmp_path: Path) -> None:
    made = build.ensure_kernel(make_pin(tmp_path), tmp_path / "cache", 1, silent)
    assert proc.run([str(made.binary)], check=False).returncode == 7


def test_a_patch_that_does_not_fit_stops_the_build(tmp_path: Path) -> None:
    pin = make_pin(tmp_path, program="int main(void) { return 1; }\n")
    with pytest.raises(
        PatchError, match=r"0001\.patch does not apply .*hello\.c: hunk 1 at line 1"
    ):
        build.ensure_kernel(pin, tmp_path / "cache", 1, silent)
    assert build.find_kernel(pin, tmp_path / "cache") is None


def test_a_damaged_binary_is_built_again(tmp_path: Path) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    made = build.ensure_kernel(pin, cache, 1, silent)
    made.binary.write_bytes(b"cut short")
    assert build.find_kernel(pin, cache) is None
    said: list[str] = []
    assert build.ensure_kernel(pin, cache, 1, said.append).identity == made.identity
    folder = made.binary.parent
    assert said[0] == f"kernel 9.9: {folder} is damaged; building it again"
    assert said[-1] == "kernel 9.9: ready"


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_no_half_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    pin = make_pin(tmp_path)
    monkeypatch.setattr(build, "read_pin", lambda _version: pin)
    monkeypatch.setattr(build, "cache", lambda: tmp_path / "cache")

    def interrupted(*_asked: object, **_named: object) -> None:
        os.kill(os.getpid(), number)
        pytest.fail("it went on")

    monkeypatch.setattr(build, "build_in", interrupted)
    assert build.main(["9.9"]) == 130
    assert not list((tmp_path / "cache" / "kernels").glob("*9.9-*"))


def test_the_build_says_how_long_it_takes_and_where_its_log_is(tmp_path: Path) -> None:
    said: list[str] = []
    build.ensure_kernel(make_pin(tmp_path), tmp_path / "cache", 2, said.append)
    (compiling,) = (line for line in said if "compiling" in line)
    assert compiling.startswith("kernel 9.9: compiling, usually ")
    assert " in all on 2 cores; log: " in compiling
    assert compiling.endswith("/build.log")


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    stale = cache / "kernels" / ".9.9-another" / "source"
    stale.mkdir(parents=True)
    build.ensure_kernel(pin, cache, 1, silent)
    assert not stale.exists()


def test_every_input_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = make_pin(tmp_path)
    keys = {build.build_key(pin)}
    keys.add(build.build_key(replace(pin, tarball_sha256="0" * 64)))
    (tmp_path / "config").write_text("CONFIG_B=y\n")
    keys.add(build.build_key(pin))
    (tmp_path / "0001.patch").write_text("other\n")
    keys.add(build.build_key(pin))
    monkeypatch.setattr(build, "read_name", lambda: "another")
    keys.add(build.build_key(pin))
    assert len(keys) == 5


def test_lost_options_are_all_named(tmp_path: Path) -> None:
    pin = make_pin(tmp_path, "CONFIG_A=y\nCONFIG_LOST_1=y\nCONFIG_LOST_2=1000\n")
    with pytest.raises(MissingError) as caught:
        build.ensure_kernel(pin, tmp_path / "cache", 1, silent)
    assert "CONFIG_LOST_1=y (is not there), CONFIG_LOST_2=1000 (is not there)" in str(caught.value)


def test_a_failed_build_shows_and_keeps_its_log(tmp_path: Path) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    (tmp_path / "0001.patch").write_text(PATCH.replace("return 7; }", "return nonsense; }"))
    with pytest.raises(compiler.BuildError, match="nonsense"):
        build.ensure_kernel(pin, cache, 1, silent)
    logs = list((cache / "kernels").glob("9.9-*.failed.log"))
    assert len(logs) == 1
    assert "nonsense" in logs[0].read_text()
    assert not list((cache / "kernels").glob(".9.9-*/"))


def test_two_runs_build_once(tmp_path: Path) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    said: list[str] = []
    runs = [
        threading.Thread(target=build.ensure_kernel, args=(pin, cache, 1, said.append))
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sum("unpacking" in message for message in said) == 1
    assert build.find_kernel(pin, cache) is not None


def test_a_build_of_another_toolchain_is_not_used(tmp_path: Path) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    made = build.ensure_kernel(pin, cache, 1, silent)
    other = replace(made.identity, compiler="root build 0123456789abcdef")
    build.write_identity(made.binary.parent, other)
    assert build.find_kernel(pin, cache) is None


def test_each_input_that_differs_is_named(tmp_path: Path) -> None:
    pin = make_pin(tmp_path)
    identity = build.ensure_kernel(pin, tmp_path / "cache", 1, silent).identity
    assert build.differences(identity, pin) == []
    other = replace(identity, source_sha256="0" * 64, config_sha256="1" * 64,
                    patches={"0002.patch": "2" * 64}, recipe="0", compiler="another")  # fmt: skip
    assert build.differences(other, pin) == [
        f"source linux-source-7.3 9.9.1-1 ({'0' * 12}) instead of "
        f"linux-source-7.3 9.9.1-1 ({pin.tarball_sha256[:12]})",
        f"configuration {'1' * 12} instead of {pin.config_sha256[:12]}",
        f"0001.patch none instead of {pin.patch_sha256['0001.patch'][:12]}",
        f"compiler another instead of {read_name()}",
        f"build recipe 0 instead of {compiler.RECIPE}",
        f"0002.patch {'2' * 12} instead of none",
    ]


def test_to_find_a_kernel_builds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pin, cache = make_pin(tmp_path), tmp_path / "cache"
    monkeypatch.setattr(build, "read_pin", lambda _version: pin)
    monkeypatch.setattr(build, "cache", lambda: cache)
    assert build.main(["9.9", "--find"]) == 3
    assert not list((cache / "kernels").glob("*9.9*"))
    made = build.ensure_kernel(pin, cache, 1, silent)
    capsys.readouterr()
    assert build.main(["9.9", "--find"]) == 0
    assert capsys.readouterr().out == f"{made.binary}\n"


def test_a_build_needs_the_standard_library_alone() -> None:
    """Bootstrap builds a kernel before the Python environment is there."""
    argv = ["/usr/bin/python3", "-P", "-S", "-m", "testbed.kernel.build.cache", "--help"]
    assert "VERSION" in proc.run(argv, env={"PYTHONPATH": str(ROOT)}).stdout


def test_config_is_parsed() -> None:
    text = '# a comment\nCONFIG_A=y\nCONFIG_B="x=y"\n# CONFIG_C is not set\n\nCONFIG_D=1000\n'
    assert compiler.parse_config(text) == {"CONFIG_A": "y", "CONFIG_B": '"x=y"', "CONFIG_C": "n",
                                           "CONFIG_D": "1000"}  # fmt: skip


def test_lost_options() -> None:
    asked = {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": "n", "CONFIG_D": "1000"}
    got = {"CONFIG_A": "n", "CONFIG_C": "y", "CONFIG_D": "1000"}
    assert compiler.lost_options(asked, got) == ["CONFIG_A=y (is n)", "CONFIG_C=n (is y)"]


def test_command_line_reports_an_unknown_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["1.0"]) == 2
    assert "no kernel '1.0' is pinned" in capsys.readouterr().err
