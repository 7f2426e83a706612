"""A "kernel" of two C files in a git repository, and patches of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from testbed.base import proc

MAKEFILE = """\
VERSION = 9
PATCHLEVEL = 9
SUBLEVEL = 3
ARCH ?= none
allnoconfig:
\tgrep -v LOST $(KCONFIG_ALLCONFIG) > .config
%.o: %.c answer.h
\t@echo "  CC      $@" >> compiled
\t$(CC) -c -o $@ $<
linux: main.o answer.o
\t$(CC) -o linux main.o answer.o
\tnm -n linux > System.map
"""
FILES: Mapping[str, str] = {"Makefile": MAKEFILE, "answer.h": "int answer(void);\n",
                            "answer.c": '#include "answer.h"\nint answer(void) { return 0; }\n',
                            "main.c": '#include "answer.h"\nint main(void) { return answer(); }\n',
                            "arch/um/Kconfig": ""}  # fmt: skip
PATCH = """\
From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001
From: A Kernel Developer <developer@example.org>
Date: Sun, 1 Nov 2026 10:00:00 +0000
Subject: [PATCH net-next 1/1] answer: say seven

It is what was asked for.
---
 answer.c | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/answer.c b/answer.c
--- a/answer.c
+++ b/answer.c
@@ -1,2 +1,2 @@
 #include "answer.h"
-int answer(void) { return 0; }
+int answer(void) { return 7; }
--
2.39.5

"""


def write_tree(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def make_repository(folder: Path) -> Path:
    """A repository with the files in one commit, tagged v9.9."""
    write_tree(folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "first")
    git(folder, "tag", "v9.9")
    return folder


def commit(folder: Path, subject: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", subject)
    return git(folder, "rev-parse", "HEAD").strip()


def git(folder: Path, *words: str) -> str:
    identities = {
        f"GIT_{role}_{field}": f"{field}@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for field in ("NAME", "EMAIL")
    }
    env = {**os.environ, **identities, "GIT_CONFIG_GLOBAL": os.devnull}
    return proc.run(["git", "-C", str(folder), *words], env=env).stdout
