"""What TAB offers, by the answers and by bash itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firstflight.completion import ARGUMENT_PLACES, OPTION_PLACES, complete
from firstflight.usage import read_verbs, render_completion
from testbed.base import proc
from testbed.base.places import PAGES, ROOT
from testbed.client import CLIENTS
from testbed.experiment.knobs import SWEPT
from testbed.kernel import KERNELS
from testbed.kernel.build.pin import pins

SECTIONS = read_verbs()


@pytest.mark.parametrize(("words", "found"), [
    (["comp"], ["compare", "completion"]),
    (["links", "show", "wpt-c"], ["wpt-cable"]),
    (["run", "--link", "wolsing-d"], ["wolsing-dsl"]),
    (["pages", "re"], ["record"]),
    (["pages", "--"], ["--help"]),
    (["report", "--m"], ["--metric"]),
    (["run", "x.toml", "--kernel-version", ""], list(pins())),
    (["run", "--kernel", "v"], ["virtual"]),
    (["run", "--client", "gr"], ["graph"]),
    (["scenario", "all", "--style", "kt"], ["ktap"]),
    (["scenario", "cached-cook"], ["cached-cookie"]),
    (["serve", "amaz"], ["amazon", "amazon-fit2011", "amazon-h2"]),
    (["completion", ""], ["bash"]),
    (["run", "conf"], []),  # files, which the shell completes itself
    (["compare", "a", ""], []),
    (["run", "--only", ""], []),
    (["run", "--dry-run", "x"], []),
    (["nothing", "like", "this"], []),
])  # fmt: skip
def test_what_a_word_may_become(words: list[str], found: list[str]) -> None:
    assert complete(words, SECTIONS) == sorted(found)


def test_nothing_typed_is_every_verb() -> None:
    assert complete([""], SECTIONS) == sorted({name.split()[0] for name in SECTIONS if name})
    assert complete([], SECTIONS) == complete([""], SECTIONS)


def test_values_are_those_of_the_program() -> None:
    assert complete(["run", "--client", ""], SECTIONS) == sorted(CLIENTS)
    assert complete(["doctor", "--client", ""], SECTIONS) == sorted(CLIENTS)
    assert complete(["run", "--kernel", ""], SECTIONS) == sorted(KERNELS)
    assert complete(["run", "--protocol", ""], SECTIONS) == sorted(SWEPT["protocol"].names)
    assert set(ARGUMENT_PLACES) <= set(SECTIONS)
    for place in (*ARGUMENT_PLACES.values(), *OPTION_PLACES.values()):
        assert (ROOT / place.folder).is_dir()
    assert complete(["serve", ""], SECTIONS) == sorted(path.name for path in PAGES.iterdir())
    assert complete(["scenario", ""], SECTIONS) == sorted(
        p.stem for p in (ROOT / "scenarios").glob("*.toml")
    )


def press_tab(folder: Path, line: str) -> list[str]:
    """What bash would offer at the end of ``line``."""
    words = line.split(" ")
    script = folder / "completion.bash"
    script.write_text(render_completion())
    program = (
        f"source '{script}'; cd '{ROOT}'; COMP_WORDS=({line or chr(39) * 2}); "
        + ('COMP_WORDS+=(""); ' if line.endswith(" ") else "")
        + f"COMP_CWORD={len(words) - 1}; _firstflight; "
        + "printf '%s\\n' \"${COMPREPLY[@]}\"; complete -p run.sh"
    )
    done = proc.run(("bash", "--norc", "-euc", program), env={"PATH": os.defpath, "HOME": "/"})
    *found, registered = done.stdout.splitlines()
    assert registered.endswith("-F _firstflight run.sh")
    return [word for word in found if word]


@pytest.mark.parametrize(
    ("line", "found"),
    [("./run.sh unp", ["unpack"]), ("./run.sh pages ex", ["export"]), ("./run.sh report res", [])],
)
def test_bash_offers_it(tmp_path: Path, line: str, found: list[str]) -> None:
    assert press_tab(tmp_path, line) == found
    assert len(press_tab(tmp_path, "./run.sh pages ")) > 3


def test_another_run_sh_is_neither_completed_nor_started(tmp_path: Path) -> None:
    other = tmp_path / "run.sh"
    other.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    other.chmod(0o755)
    assert press_tab(tmp_path, f"{other} unp") == []
    assert not (tmp_path / "started").exists()


def test_a_tree_whose_path_bash_would_take_apart(tmp_path: Path) -> None:
    tree = tmp_path / 'it\'s "$(touch started)" & *'
    tree.mkdir()
    for name in ("firstflight", "testbed"):
        (tree / name).symlink_to(ROOT / name)
    (tree / "run.sh").touch()
    script = tmp_path / "completion.bash"
    script.write_text(render_completion(tree))
    program = (
        'source "$1"; COMP_WORDS=("$2" unp); COMP_CWORD=1; _firstflight; '
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    argv = ("bash", "--norc", "-euc", program, "bash", str(script), str(tree / "run.sh"))
    done = proc.run(argv, env={"PATH": os.defpath, "HOME": "/"}, cwd=tmp_path)
    assert done.stdout.split() == ["unpack"]
    assert not (tmp_path / "started").exists()
