"""The compiler of kernels: headers are compiled once, and no file's meaning changes by it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.kernel.build import compiler
from tests.kernel.toolchains import find_toolchain

HEADER = """\
#ifdef ASKED
#define ANSWER 8
#else
#define ANSWER 7
#endif
static inline int shared(void) { return ANSWER; }
"""
ALWAYS = tuple(
    f"include/linux/{name}.h" for name in ("compiler-version", "kconfig", "compiler_types")
)
FLAGS = "-O2 -Werror=implicit-function-declaration"


@dataclass(frozen=True)
class Tree:
    """A kernel of one header, which nearly every file includes."""

    folder: Path

    def write(self, name: str, text: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def compile(self, source: str, *options: str, **exported: str) -> tuple[int, str]:
        """Status and errors, called as does it for a file below ``net/``."""
        include = [word for name in ALWAYS for word in ("-include", f"./{name}")]
        names = [f'-DKBUILD_MODNAME="{source}"', f"-D__KBUILD_MODNAME={source}"]
        gcc = [find_toolchain().program("bash"), ".precompiled/gcc"]
        argv = [*gcc, f"-Wp,-MMD,net/{source}.d", "-I./include", *include,
                *FLAGS.split(), *options, *names, "-c", "-o", f"net/{source}.o",
                f"net/{source}.c"]  # fmt: skip
        flags = {"NOSTDINC_FLAGS": "", "KBUILD_CPPFLAGS": "", "KBUILD_CFLAGS": FLAGS,
                 "LINUXINCLUDE": " ".join(["-I./include", *include])}  # fmt: skip
        env = {**find_toolchain().environment, **flags, **exported}
        done = proc.run(argv, cwd=self.folder, env=env, check=False)
        return done.returncode, done.stderr

    def returned(self, source: str) -> int:
        """What ``main`` of the compiled ``source`` returns."""
        program = self.folder / "program"
        toolchain = find_toolchain()
        gcc = [toolchain.program("gcc"), f"--sysroot={toolchain.folder}", "-static"]
        proc.run(
            [*gcc, "-o", str(program), str(self.folder / f"net/{source}.o")],
            env=toolchain.environment,
        )
        return proc.run([str(program)], check=False).returncode

    @property
    def compiled(self) -> Path:
        return self.folder / ".precompiled" / "headers.h.gch"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    for name in ALWAYS:
        made.write(name, f"#define {Path(name).stem.replace('-', '_').upper()}_READ 1\n")
    made.write("include/linux/shared.h", f"#pragma once\n{HEADER}")
    included = (name.removeprefix("include/") for name in (*ALWAYS, "include/linux/shared.h"))
    text = "".join(f"#include <{name}>\n" for name in included)
    made.write(".precompiled/headers.h", text)
    shutil.copy(Path(compiler.__file__).with_name("gcc.sh"), tmp_path / ".precompiled/gcc")
    return made


def test_a_file_is_compiled_with_headers_that_were_compiled_once(tree: Tree) -> None:
    tree.write("net/a.c", "#include <linux/shared.h>\nint main(void)"
               "{ return shared() + sizeof(KBUILD_MODNAME) + KCONFIG_READ; }\n")  # fmt: skip
    tree.write("net/longer.c", (tree.folder / "net/a.c").read_text())
    assert tree.compile("a") == (0, "")
    made = tree.compiled.stat().st_mtime_ns
    assert tree.compile("longer") == (0, "")
    assert tree.compiled.stat().st_mtime_ns == made
    assert (tree.returned("a"), tree.returned("longer")) == (7 + 2 + 1, 7 + 7 + 1)
    # The header itself is not read again: this one would not compile.
    tree.write("include/linux/shared.h", "#error read again\n")
    tree.write("net/last.c", "int main(void) { return shared(); }\n")
    assert tree.compile("last") == (0, "")


def test_make_knows_which_headers_were_compiled(tree: Tree) -> None:
    tree.write("net/a.c", "int main(void) { return shared(); }\n")
    tree.compile("a")
    named = (tree.folder / "net/a.d").read_text()
    assert all(name in named for name in (*ALWAYS, "include/linux/shared.h"))
    assert ".gch" not in named  # it is made again by each build, and would compile all again


def test_a_macro_before_the_first_header_reaches_it(tree: Tree) -> None:
    tree.write("net/a.c", "#define ASKED\n#include <linux/shared.h>\n"
               "int main(void) { return shared(); }\n")  # fmt: skip
    assert tree.compile("a") == (0, "")
    assert tree.returned("a") == 8
    assert not tree.compiled.exists()


def test_an_option_of_a_file_of_its_own_reaches_the_header(tree: Tree) -> None:
    for name in ("plain", "asking"):
        tree.write(
            f"net/{name}.c", "#include <linux/shared.h>\nint main(void) { return shared(); }\n"
        )
    assert tree.compile("plain") == (0, "")
    assert tree.compile("asking", "-DASKED") == (0, "")
    assert (tree.returned("plain"), tree.returned("asking")) == (7, 8)


def test_headers_are_compiled_with_the_checkers_that_files_are(tree: Tree) -> None:
    tree.write("net/a.c", "#include <linux/shared.h>\nint main(void) { return shared(); }\n")
    checked = "-fsanitize=kernel-address"
    exported = {"CFLAGS_KASAN": checked, "CFLAGS_UBSAN": "-fsanitize=shift"}
    assert tree.compile("a", checked, "-fsanitize=shift", **exported) == (0, "")
    # The header itself is not read again: this one would not compile.
    tree.write("include/linux/shared.h", "#error read again\n")
    tree.write("net/b.c", "int main(void) { return shared(); }\n")
    assert tree.compile("b", checked, "-fsanitize=shift", **exported) == (0, "")


def test_a_name_that_a_header_has_does_not_disturb(tree: Tree) -> None:
    tree.write("net/a.c", "static long shared(long x) { return x; }\n"
               "int main(void) { return shared(3); }\n")  # fmt: skip
    assert tree.compile("a") == (0, "")
    assert tree.returned("a") == 3


def test_errors_and_warnings_are_those_of_the_file(tree: Tree) -> None:
    tree.write("net/a.c", "int main(void) { return forgotten(); }\n")
    status, said = tree.compile("a")
    assert status != 0
    assert said.count("error:") == 1
    assert "net/a.c:1:25: error: implicit declaration of function 'forgotten'" in said
    tree.write("net/b.c", "int main(void) { int x; return 0; }\n")
    status, said = tree.compile("b", "-Wall")
    assert status == 0
    assert said.count("warning: unused variable 'x'") == 1


def test_headers_that_do_not_compile_are_not_used(tree: Tree) -> None:
    tree.write("include/linux/shared.h", "#include <linux/gone.h>\n")
    tree.write("net/a.c", "int main(void) { return KCONFIG_READ; }\n")
    assert tree.compile("a") == (0, "")
    assert tree.returned("a") == 1


def test_new_headers_are_compiled_by_the_next_build(tree: Tree) -> None:
    tree.write("net/a.c", "#include <linux/shared.h>\nint main(void) { return shared(); }\n")
    tree.compile("a")
    compiler.bring_compiler(tree.folder)
    assert not tree.compiled.exists()
    before = (tree.folder / ".precompiled/headers.h").stat().st_mtime_ns
    compiler.bring_compiler(tree.folder)
    assert (tree.folder / ".precompiled/headers.h").stat().st_mtime_ns == before
