"""Verbs of own kernels: what they list, show, remove and refuse; and what git bisect is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.cli.main import main
from testbed.base import places, proc
from testbed.base.errors import ConfigurationError
from testbed.kernel.build.patches import Patch
from tests.hallway import make_services
from tests.kernel.small_tree import PATCH, make_repository
from wings.kernels.cli.source import KernelSource
from wings.kernels.own.build import dropped_options, key_of
from wings.kernels.own.definition import (
    OwnKernel,
    own_kernels,
    parse_definition,
    render_definition,
    write_own,
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def keep(name: str) -> OwnKernel:
    own = OwnKernel(name, "7.3", (Patch("0001-seven.patch", "say seven", PATCH),))
    write_own(own, places.data(), replaced=False)
    return own


def test_list_and_show_tell_pinned_from_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("mine")
    services = make_services(tmp_path)
    assert main(["kernel", "list", "--json"], services) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert {"7.3", "6.1", "mine"} <= rows.keys()
    assert (rows["mine"]["base"], rows["7.3"]["base"]) == ("7.3", None)
    assert rows["mine"]["binary"] is None
    assert main(["kernel", "list"], services) == 0
    assert "not yet" in capsys.readouterr().out
    assert main(["kernel", "show", "mine"], services) == 0
    said = capsys.readouterr().out
    assert "patch 0001-seven.patch: answer.c" in said
    assert "base 7.3" in said


def test_a_damaged_kernel_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("broken", "mine"):
        keep(name)
    (places.data() / "kernels" / "broken" / "kernel.json").write_text("{")
    assert main(["kernel", "list"], make_services(tmp_path)) == 2
    said = capsys.readouterr()
    assert "mine" in said.out
    assert "kernel remove broken" in said.err


def test_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        keep(name)
    services = make_services(tmp_path)
    assert main(["kernel", "remove", "one", "7.3"], services) == 2
    assert main(["kernel", "remove", "one", "tow"], services) == 2
    assert "did you mean 'two'?" in capsys.readouterr().err
    assert own_kernels(places.data()) == ("one", "two")  # all or nothing
    assert main(["kernel", "remove", "one", "two"], services) == 0
    assert own_kernels(places.data()) == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "Mine"), "cannot be a kernel's name"),
        (("add", "mine", "--patch", "absent.patch"), "absent.patch: cannot be read"),
        (("add", "mine", "--patch", "a.patch", "b.patch"), "b.patch: cannot be read"),
        (("add", "mine", "--series"), "--series makes a kernel for each patch"),
        (("add", "mine", "--each"), "--each makes a kernel for each patch"),
        (("add", "mine", "--rev", "HEAD"), "give --git DIR"),
        (("add", "mine", "--git", "absent"), "no such folder"),
        (("build", "mine"), "no kernel 'mine'"),
        (("show", "7.4"), "no kernel '7.4'"),
        (("try", "--against", "HEAD"), "give --git DIR"),
        (("bisect", "--good", "a", "--bad", "b", "--git", "absent"), "no such folder"),
    ],
)
def test_bad_requests_are_named_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["kernel", *words], make_services(tmp_path)) == 2
    assert said in capsys.readouterr().err
    assert own_kernels(places.data()) == ()


def test_a_kernel_that_is_there_is_not_replaced_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep("mine")
    assert main(["kernel", "add", "mine"], make_services(tmp_path)) == 2
    assert "give --replace" in capsys.readouterr().err


@pytest.mark.parametrize("words",
                         [("--against", "v9.9", "--nonsense"),
                          ("--against", "v9.9", "--git", "absent"), ("--against", "v10"),
                          ("--against", "v9.9", "page=nonsense"),
                          ("--against", "v9.9", "--promise", "cached-cookie", "page=amazon"),
                          ()])  # fmt: skip
def test_git_bisect_run_stops_at_a_mistake_and_takes_it_for_no_verdict(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    repository = make_repository(tmp_path / "linux")
    words = words if "--git" in words else (*words, "--git", str(repository))
    code = main(["kernel", "bisect-step", *words], make_services(tmp_path))
    assert 128 <= code < 256


def test_a_mistyped_option_stops_git_bisect_run_before_anything_is_set_up() -> None:
    words = ["kernel", "bisect-step", "--nonsense"]
    done = proc.run([str(places.ROOT / "run.sh"), *words], check=False)
    assert done.returncode == 128 + 2
    assert "no such option: --nonsense" in done.stderr
    other = proc.run([str(places.ROOT / "run.sh"), "kernel", "list", "--nonsense"], check=False)
    assert other.returncode == 2


def test_each_patch_alone_or_with_those_before_it(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.patch").write_text(PATCH.partition("\n\n")[2])
    files = (tmp_path / "first.patch", tmp_path / "second.patch")
    nothing = KernelSource(None, None, None, (), series=False, each=False)
    alone = replace(nothing, each=True).define("mine", files)
    assert [own.name for own in alone] == ["mine-first", "mine-second"]
    assert [[patch.name for patch in own.patches] for own in alone] == [
        ["0001-first.patch"],
        ["0001-second.patch"],
    ]
    steps = replace(nothing, series=True).define("mine", files)
    assert [(own.name, len(own.patches)) for own in steps] == [("mine-1", 1), ("mine-2", 2)]
    with pytest.raises(ConfigurationError, match="give one of them"):
        replace(nothing, each=True, series=True).define("mine", files)


def test_patches_are_taken_back_or_applied_with_fuzz_and_kept_so(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_text(PATCH.partition("\n\n")[2])
    nothing = KernelSource(None, None, None, (), series=False, each=False)
    (back,) = replace(nothing, reverse=True, fuzz=2).define("mine", [tmp_path / "a.patch"])
    (plain,) = nothing.define("mine", [tmp_path / "a.patch"])
    assert [(patch.reverse, patch.fuzz) for patch in back.patches] == [(True, 2)]
    assert parse_definition("mine", render_definition(back), tmp_path) == back
    assert parse_definition("mine", render_definition(plain), tmp_path) == plain
    assert key_of(back) != key_of(plain)
    assert set(json.loads(render_definition(plain)["kernel.json"])["patches"][0]) == {
        "file", "subject",
    }  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"--reverse says how .* name a patch"):
        replace(nothing, reverse=True).define("mine", [])


def test_an_option_needs_no_file_and_what_it_drops_is_known(tmp_path: Path) -> None:
    nothing = KernelSource(None, None, None, (), series=False, each=False)
    given = replace(nothing, fragments=(Path("CONFIG_PACKET=n"), Path("CONFIG_TCP_CONG_NV=y")))
    (own,) = given.define("mine", [])
    assert own.options == (("CONFIG_PACKET", "n"), ("CONFIG_TCP_CONG_NV", "y"))
    (dropped,) = dropped_options(own)
    assert dropped.startswith("CONFIG_PACKET is off")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        replace(nothing, fragments=(Path("CONFIG_PACKET"),)).define("mine", [])
