"""Own kernels: what is defined, kept, built, found again and removed; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.debian import LOCKED_VARIABLE, locked_only
from testbed.base.errors import ConfigurationError
from testbed.base.places import using_cache
from testbed.kernel.build.cache import KernelBuild
from testbed.kernel.build.compiler import BuildError, parse_config
from testbed.kernel.build.patches import PatchError
from testbed.kernel.build.pin import Pin, pins, read_pin
from testbed.kernel.build.source import DebianSource, kept_tarball
from tests.kernel.packed import keep_programs
from tests.kernel.small_pin import PROGRAM, make_pin
from tests.kernel.small_tree import commit, make_repository
from tests.kernel.toolchains import find_toolchain
from wings.kernels.own import build as own_build
from wings.kernels.own import definition as own
from wings.kernels.own.build import ensure_own, find_own, remove_own
from wings.kernels.own.definition import ADDITIONS, OwnKernel, define, read_own, write_own
from wings.kernels.transfer import export_kernel, import_kernel

SEVEN_TO_NINE = """\
--- a/hello.c
+++ b/hello.c
@@ -1 +1 @@
-int main(void) { return 7; }
+int main(void) { return 9; }
"""
NINE_TO_SIX = SEVEN_TO_NINE.replace("return 9", "return 6").replace("return 7", "return 9")


@pytest.fixture
def pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pin:
    made = replace(make_pin(tmp_path / "pin"), version="7.3")
    monkeypatch.setattr(own, "read_pin", lambda _version: made)
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


def make(home: Path, name: str = "mine", *texts: str, **asked: object) -> OwnKernel:
    """A kernel with these patches; ``asked`` is as ``define`` takes it."""
    home.mkdir(exist_ok=True)
    files = []
    for number, text in enumerate(texts):
        files.append(home / f"{number}.patch")
        files[-1].write_text(text)
    nothing = {"base": None, "fragments": (), "git": None, "revision": None}
    return define(name, home, patches=files, **{**nothing, **asked})  # type: ignore[arg-type]


def build(kernel: OwnKernel, cache: Path, problem: str | None = None) -> KernelBuild:
    return ensure_own(kernel, cache, 1, lambda _line: None, lambda _build: problem)


def returned(made: KernelBuild) -> int:
    from testbed.base import proc

    return proc.run([str(made.binary)], check=False).returncode


@pytest.mark.usefixtures("pin")
def test_kept_and_read_back(home: Path) -> None:
    (home / "x").parent.mkdir()
    (home / "fragment").write_text("CONFIG_B=y\n# CONFIG_A is not set\n")
    kernel = make(home, "mine", SEVEN_TO_NINE, NINE_TO_SIX, fragments=[home / "fragment"])
    assert [patch.name for patch in kernel.patches] == ["0001-0.patch", "0002-1.patch"]
    assert kernel.render_config() == "# CONFIG_A is not set\nCONFIG_B=y\n"
    write_own(kernel, home, replaced=False)
    assert own.own_kernels(home) == ("mine",)
    assert read_own("mine", home) == kernel
    with pytest.raises(ConfigurationError, match="is there; choose another name"):
        write_own(kernel, home, replaced=False)
    write_own(replace(kernel, patches=()), home, replaced=True)
    assert read_own("mine", home).patches == ()


@pytest.mark.usefixtures("pin")
def test_built_once_under_what_it_is_made_of(home: Path, tmp_path: Path) -> None:
    cache = tmp_path / "pin" / "cache"
    kernel = make(home, "mine", SEVEN_TO_NINE)
    assert find_own(kernel, cache) is None
    made = build(kernel, cache)
    assert returned(made) == 9
    assert made.identity.version == "mine"
    assert set(made.identity.patches) == {"0001.patch", "own/0001-0.patch"}
    assert find_own(kernel, cache) == made
    again = build(replace(kernel, name="other"), cache, "would be refused")
    assert (again.binary, again.identity.version) == (made.binary, "other")
    changed = make(home, "mine", SEVEN_TO_NINE, NINE_TO_SIX)
    assert returned(build(changed, cache)) == 6
    made.binary.write_bytes(b"cut short")
    assert find_own(kernel, cache) is None
    assert returned(build(kernel, cache)) == 9


def test_one_of_a_newer_source_is_named_as_what_it_is(
    pin: Pin, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LOCKED_VARIABLE, raising=False)
    newer = make_pin(tmp_path / "newer", program=f"{PROGRAM}\n")
    tarball = kept_tarball(newer, tmp_path / "newer" / "cache")
    source = DebianSource(tarball, newer.tarball_sha256, newer.package, "9.9.2-1", find_toolchain())
    monkeypatch.setattr(own_build, "fetch_source", lambda *_asked: source)
    kernel, cache = make(home, "mine", SEVEN_TO_NINE), tmp_path / "pin" / "cache"
    made = build(kernel, cache)
    assert returned(made) == 9
    assert made.identity.package_version == "9.9.2-1"
    assert made.identity.source_sha256 == newer.tarball_sha256 != pin.tarball_sha256
    assert find_own(kernel, cache) == made == build(kernel, cache, "would be refused")
    with locked_only():
        assert find_own(kernel, cache) is None


@pytest.mark.usefixtures("pin")
def test_another_kernel_of_ones_own_is_a_base(home: Path, tmp_path: Path) -> None:
    write_own(make(home, "first", SEVEN_TO_NINE), home, replaced=False)
    second = make(home, "second", NINE_TO_SIX, base="first")
    assert [patch.name for patch in second.patches] == ["0001-0.patch", "0002-0.patch"]
    assert returned(build(second, tmp_path / "pin" / "cache")) == 6


@pytest.mark.usefixtures("pin")
def test_what_cannot_be_built_is_not_kept(home: Path, tmp_path: Path) -> None:
    cache = tmp_path / "pin" / "cache"
    with pytest.raises(PatchError, match=r"hello\.c: hunk 1"):
        build(make(home, "mine", NINE_TO_SIX), cache)
    with pytest.raises(BuildError, match="nonsense"):
        build(make(home, "mine", SEVEN_TO_NINE.replace("return 9", "return nonsense")), cache)
    kernel = make(home, "mine", SEVEN_TO_NINE)
    with pytest.raises(BuildError, match="kernel mine does not boot: it panicked"):
        build(kernel, cache, "does not boot: it panicked")
    assert find_own(kernel, cache) is None
    assert not list((cache / "kernels" / "own").glob("*/"))
    assert returned(build(kernel, cache)) == 9


@pytest.mark.usefixtures("pin")
def test_removed_with_its_build_unless_another_has_the_same(home: Path, tmp_path: Path) -> None:
    cache = tmp_path / "pin" / "cache"
    for name in ("one", "two"):
        write_own(make(home, name, SEVEN_TO_NINE), home, replaced=False)
    made = build(read_own("one", home), cache)
    remove_own("one", home, cache)
    assert own.own_kernels(home) == ("two",)
    assert made.binary.is_file()
    remove_own("two", home, cache)
    assert not made.binary.exists()
    with pytest.raises(ConfigurationError, match="no kernel 'two'"):
        remove_own("two", home, cache)


@pytest.mark.usefixtures("pin")
def test_what_is_built_stays_while_a_run_uses_the_cache(home: Path, tmp_path: Path) -> None:
    """Of this kernel, perhaps: another home may have the same under the same cache."""
    cache = tmp_path / "pin" / "cache"
    write_own(make(home, "one", SEVEN_TO_NINE), home, replaced=False)
    made = build(read_own("one", home), cache)
    with using_cache(cache):
        remove_own("one", home, cache)
    assert own.own_kernels(home) == ()
    assert made.binary.is_file()


def test_everything_wrong_is_said_at_once(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (home / "fragment").write_text("CONFIG_A=y\nA=y\n")
    with pytest.raises(ConfigurationError) as caught:
        make(home, "7.3", "no patch", base="7.4", revision="HEAD", fragments=[home / "fragment"])
    said = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 5
    for words in ("'7.3' cannot be a kernel's name", "no kernel '7.4' (did you mean '7.3'?)",
                  "--rev names a revision of a git tree", "no patch",
                  "line 2 is no option"):  # fmt: skip
        assert words in said  # fmt: skip


def test_additions_have_names_and_options_that_no_kernel_has_yet(home: Path) -> None:
    for file in sorted(ADDITIONS.glob("*.config")):
        added = parse_config(file.read_text())
        assert added
        assert set(added.values()) == {"y"}
        for version in pins():
            usual = parse_config(read_pin(version).config.read_text())
            assert not {name for name in added if usual.get(name) == "y"}, file
    both = make(home, "mine", fragments=[Path("transports"), Path("queues")])
    assert {("CONFIG_MPTCP", "y"), ("CONFIG_NET_SCH_HFSC", "y")} <= set(both.options)
    with pytest.raises(ConfigurationError, match="by name there are: congestion-control, leaks, "):
        make(home, "mine", fragments=[Path("transport")])


def test_patches_come_with_an_addition_behind_the_user_s_and_once(home: Path) -> None:
    mine = make(home, "mine", NINE_TO_SIX, fragments=[Path("leaks")])
    assert [each.name.partition("-")[0] for each in mine.patches] == ["0001", "0002", "0003"]
    assert ["kmemleak" in each.text for each in mine.patches] == [False, True, True]
    older = make(home, "older", base="6.1", fragments=[Path("leaks")])
    assert [each.subject for each in older.patches] == [mine.patches[1].subject]
    write_own(mine, home, replaced=False)
    more = make(home, "more", base="mine", fragments=[Path("leaks")])
    assert more.patches == mine.patches


def test_modules_are_refused(home: Path) -> None:
    home.mkdir()
    modules = [f"CONFIG_M{number}=m" for number in range(9)]
    (home / "all").write_text("\n".join(["CONFIG_A=y", *modules]))
    with pytest.raises(ConfigurationError, match=r"CONFIG_M0, CONFIG_M1, CONFIG_M2 and 6 more: g"):
        make(home, "mine", fragments=[home / "all"])
    with pytest.raises(ConfigurationError, match=r"CONFIG_TLS: guests load no modules"):
        make(home, "mine", fragments=[Path("CONFIG_TLS=m")])


@pytest.mark.parametrize("name", ["", "Mine", "-mine", "a/b", "..", "host", "virtual", "a" * 41])
def test_names_that_cannot_be(home: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be a kernel's name"):
        make(home, name)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 2}', '{"schema": 1, "base": "5.5"}'])
def test_a_damaged_definition_names_its_remedy(home: Path, text: str) -> None:
    write_own(OwnKernel("mine", "7.3"), home, replaced=False)
    (home / "kernels" / "mine" / "kernel.json").write_text(text)
    with pytest.raises(ConfigurationError, match="kernel remove mine"):
        read_own("mine", home)
    remove_own("mine", home, home)
    assert own.own_kernels(home) == ()


def test_no_set_of_patches_fits_a_foreign_tree(home: Path, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "linux")
    with pytest.raises(ConfigurationError, match="none of the testbed's own sets") as caught:
        make(home, "mine", git=repository)
    assert len(caught.value.problems) >= 3


@pytest.mark.usefixtures("pin")
def test_a_git_tree_is_built_step_by_step(home: Path, tmp_path: Path, pin: Pin) -> None:
    cache = tmp_path / "pin" / "cache"
    repository = make_repository(tmp_path / "linux")
    (repository / "hello.c").write_text("int main(void) { return 0; }\n")
    makefile = (repository / "Makefile").read_text()
    (repository / "Makefile").write_text(
        makefile.replace("linux: main.o answer.o\n\t$(CC) -o linux main.o answer.o",
                         "linux: hello.c\n\t$(CC) -o linux hello.c")
    )  # fmt: skip
    first = commit(repository, "hello")
    kernel = make(home, "mine", git=repository, base="7.3")
    assert kernel.git is not None and kernel.git.commit == first
    write_own(kernel, home, replaced=False)
    assert read_own("mine", home) == kernel
    assert returned(build(kernel, cache)) == 7  # by the pin's patch
    (repository / "notes").write_text("not committed")
    changed = make(home, "mine", SEVEN_TO_NINE, git=repository, base="7.3")
    made = build(changed, cache)
    assert returned(made) == 9
    assert made.identity.source_sha256 != kernel.git.tree
    assert (made.identity.package, pin.version) == ("git", "7.3")


def test_what_does_not_fit_is_left_out_where_a_kernel_can_do_without(
    home: Path, tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path / "linux")
    (repository / "hello.c").write_text("int main(void) { return 0; }\n")
    commit(repository, "hello")
    names = ("0002-um-images-of-a-guest.patch", "0003-tcp-manage-connections-under-overload.patch")
    for fits in (0, 1):
        for number, name in enumerate(names):
            before = 7 if number == fits else 1
            text = SEVEN_TO_NINE.replace("return 7", f"return {before}")
            (tmp_path / name).write_text(f"SPDX-License-Identifier: GPL-2.0-only\n\n---\n{text}")
        more = replace(pin, patches=(*pin.patches, *(tmp_path / name for name in names)))
        monkeypatch.setattr(own, "read_pin", lambda _version, more=more: more)
        kernel = make(home, "mine", git=repository, base="7.3")
        assert kernel.omitted == (names[1 - fits],)
    assert own.what_is_lost(names[0]) == "each guest boots, which costs more"
    assert own.what_is_lost("0001-um-choose-the-timer-frequency.patch") is None


@pytest.fixture
def native(tmp_path: Path) -> Path:
    return keep_programs(tmp_path / "pin" / "cache")


def exported(kernel: OwnKernel, native: Path, tmp_path: Path) -> tuple[Path, KernelBuild]:
    made = build(kernel, tmp_path / "pin" / "cache")
    file = tmp_path / "mine.tar"
    export_kernel(made, native, file, lambda _line: None, replace=True, own=kernel)
    return file, made


@pytest.mark.usefixtures("pin")
def test_carried_to_another_machine(home: Path, tmp_path: Path, native: Path) -> None:
    (home / "x").parent.mkdir()
    (home / "fragment").write_text('CONFIG_B="ä word"\n')
    kernel = make(home, "mine", SEVEN_TO_NINE, fragments=[home / "fragment"])
    file, made = exported(kernel, native, tmp_path)
    cache, there = tmp_path / "there", tmp_path / "data there"
    done = import_kernel(file, cache, there, lambda _line: None)
    assert done.added
    assert done.build.binary.read_bytes() == made.binary.read_bytes()
    assert read_own("mine", there) == kernel
    assert find_own(kernel, cache) == done.build
    again = import_kernel(file, cache, there, lambda _line: None)
    assert not again.added
    found = made.binary.with_name("sysctls.json")
    found.write_text("{}")
    assert not import_kernel(file, tmp_path / "pin" / "cache", home, lambda _line: None).added
    assert found.read_text() == "{}"


@pytest.mark.usefixtures("pin")
def test_another_kernel_of_that_name_is_not_replaced(
    home: Path, tmp_path: Path, native: Path
) -> None:
    file, _ = exported(make(home, "mine", SEVEN_TO_NINE), native, tmp_path)
    there = tmp_path / "data there"
    write_own(OwnKernel("mine", "7.3"), there, replaced=False)
    with pytest.raises(ConfigurationError, match="'mine' is there, and is another"):
        import_kernel(file, tmp_path / "there", there, lambda _line: None)
    assert read_own("mine", there).patches == ()
    assert [path.name for path in (tmp_path / "there").rglob("*") if path.is_file()] == ["lock"]


@pytest.mark.usefixtures("pin")
def test_a_pack_of_another_base_is_refused(
    home: Path, tmp_path: Path, native: Path, pin: Pin
) -> None:
    file, _ = exported(make(home, "mine", SEVEN_TO_NINE), native, tmp_path)
    pin.config.write_text("CONFIG_A=y\nCONFIG_C=y\n")
    with pytest.raises(ConfigurationError, match=r"made from another 7\.3 than this tree's"):
        import_kernel(file, tmp_path / "there", tmp_path / "data there", lambda _line: None)
    assert not (tmp_path / "data there").exists()
