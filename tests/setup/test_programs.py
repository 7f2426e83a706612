from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.client.program import Program
from testbed.setup.programs import (
    ABSENT,
    parse_list,
    programs_of,
    read_elsewhere,
    read_files,
    read_owners,
    read_packages,
    read_version,
    read_versions,
)


def compiled(folder: Path) -> tuple[Path, Path]:
    """A program that no package owns, with a library of its own that none owns either."""
    library, program = folder / "libplanted.so", folder / "node"
    (folder / "planted.c").write_text("int planted(void) { return 0; }\n")
    (folder / "main.c").write_text("int planted(void); int main(void) { return planted(); }\n")
    shared = ("gcc", "-shared", "-fPIC", f"-Wl,-soname,{library.name}")
    proc.run((*shared, "-o", str(library), str(folder / "planted.c")))
    linked = ("gcc", f"-Wl,-rpath,{folder}", "-o", str(program))
    proc.run((*linked, str(folder / "main.c"), str(library)))
    return program, library


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_no_package_owns_is_named_by_its_content(tmp_path: Path) -> None:
    program, library = compiled(tmp_path)
    planted = (Program("node", "nodejs", places=(program,)),)
    found = read_files(planted)
    libc = read_packages(("libc6",))["libc6"]
    assert found == {
        f"file.{library}": sha256(library),
        f"file.{program}": sha256(program),
        "package.libc6": libc,
    }
    with library.open("ab") as stream:
        stream.write(b"patched")
    assert {name for name, value in read_files(planted).items() if found[name] != value} == {
        f"file.{library}"
    }
    library.unlink()
    assert read_files(planted)[f"file.{library.name}"] == ABSENT


def test_a_static_program_has_no_libraries_and_what_the_loader_refuses_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, program = tmp_path / "main.c", tmp_path / "node"
    source.write_text("int main(void) { return 0; }\n")
    proc.run(("gcc", "-static", "-o", str(program), str(source)))
    planted = (Program("node", "nodejs", places=(program,)),)
    assert read_files(planted) == {f"file.{program}": sha256(program)}
    # Static, too: it is started with the loader's own settings.
    loader = tmp_path / "loader"
    source.write_text("int main(void) { return 2; }\n")
    proc.run(("gcc", "-static", "-o", str(loader), str(source)))
    monkeypatch.setattr("testbed.setup.programs.LOADER", str(loader))
    with pytest.raises(MissingError, match="cannot be listed"):
        read_files(planted)


def test_the_callers_libraries_and_programs_are_not_the_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = programs_of(("wget2",))
    before, versions = read_files(programs), read_versions(programs)
    shutil.copy("/lib/x86_64-linux-gnu/libz.so.1", tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    planted = tmp_path / "dnsmasq"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    assert "elsewhere.dnsmasq" not in read_elsewhere(programs)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert read_files(programs) == before
    assert read_versions(programs) == versions
    reported = read_elsewhere(programs)["elsewhere.dnsmasq"]
    assert reported == f"{planted}, which guests do not run (/usr/sbin/dnsmasq)"


def test_a_client_without_a_browser_depends_on_none() -> None:
    for client in ("graph", "wget2"):
        programs = programs_of((client,))
        names = read_files(programs).keys() | read_versions(programs).keys()
        assert not [
            name
            for name in names
            if any(word in name for word in ("node", "chrom", "fonts", "nss3"))
        ]
    assert {"package.nginx", "package.libssl3", "package.libc6"} <= names
    assert "package.libgnutls30" in read_files(programs_of(("wget2",)))
    assert "package.libgnutls30" not in read_files(programs_of(("graph",)))


@pytest.mark.browser
def test_a_browser_brings_its_libraries_and_no_node() -> None:
    programs = programs_of(("chromium",))
    found = read_files(programs)
    assert not [name for name in found if "node" in name]
    for name in ("chromium-headless-shell", "chromium-common", "libnss3", "fonts-dejavu-core"):
        assert found[f"package.{name}"] != ABSENT
    assert "program.chromium-headless-shell" in read_versions(programs)


def test_another_browser_takes_the_place_of_the_installed_one(tmp_path: Path) -> None:
    program, _ = compiled(tmp_path)
    found = read_files(programs_of(("chromium",), program))
    assert found[f"file.{program}"] == sha256(program)
    assert "package.chromium-headless-shell" not in found


def test_packages_own_files_on_either_side_of_the_merged_usr() -> None:
    paths = [Path("/usr/lib/x86_64-linux-gnu/libc.so.6"), Path("/usr/bin/python3.11")]
    there = [path for path in paths if path.exists()]
    owners = read_owners([*there, Path("/usr/bin/no-such-program-here")])
    assert set(owners) == set(there)
    assert owners[paths[0]][0].partition(":")[0] == "libc6"
    assert read_owners([]) == {}


def test_what_the_loader_lists() -> None:
    text = """\
\tlinux-vdso.so.1 (0x00007f0cbb114000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f0cbb02c000)
\tlibgone.so.1 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f0cbb116000)
"""
    assert parse_list(text) == (
        {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"},
        {"libgone.so.1"},
    )


def test_versions_come_from_the_programs_themselves(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "version $1"\n')
    program.chmod(0o755)
    assert read_version(program, "--version") == "version --version"
    program.write_text("#!/bin/sh\nexit 3\n")
    assert read_version(program, "--version") == "no answer (status 3)"
    assert read_version(None, "--version") == ABSENT
    assert read_versions((Program("no-such-program", "", "-V"), Program("quiet", "", ""))) == {
        "program.no-such-program": ABSENT
    }


def test_packages_come_from_dpkg() -> None:
    found = read_packages(("libc6:amd64", "no-such-package-here"))
    status = proc.run(["dpkg-query", "-W", "-f", "${Version}", "libc6:amd64"]).stdout
    assert found == {"libc6": status, "no-such-package-here": ABSENT}
