"""Patch series: files and mailboxes that are read, and patches that do or do not apply."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_MISSING, ConfigurationError
from testbed.kernel.build.patches import Patch, PatchError, apply_patch, read_series
from tests.kernel.small_tree import FILES, PATCH, write_tree
from tests.kernel.toolchains import find_toolchain

DIFF = PATCH.partition("diff --git")[2]
SECOND = (
    PATCH.replace("say seven", "say eight")
    .replace("return 0", "return 6")
    .replace("return 7", "return 8")
    .replace("return 6", "return 7")
)
COVER = """\
From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001
From: A Kernel Developer <developer@example.org>
Subject: [PATCH 0/2] answer: better answers

From here on all is better: 10:00:00 in 2026.
"""


def series(tmp_path: Path, text: str | bytes, name: str = "a.mbox") -> tuple[Patch, ...]:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_series([file])


def test_a_mailbox_is_split_and_its_cover_letter_passed_over(tmp_path: Path) -> None:
    found = series(tmp_path, f"{COVER}\n{PATCH}{SECOND}")
    assert [patch.name for patch in found] == ["0001-answer-say-seven.patch",
                                               "0002-answer-say-eight.patch"]  # fmt: skip
    assert [patch.subject for patch in found] == ["answer: say seven", "answer: say eight"]
    assert [patch.touched for patch in found] == [("answer.c",), ("answer.c",)]


def test_a_plain_diff_is_a_patch(tmp_path: Path) -> None:
    (patch,) = series(tmp_path, f"diff --git{DIFF}", "my change.diff")
    assert (patch.name, patch.subject) == ("0001-my-change.patch", "my change")


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
def test_a_mail_is_decoded(tmp_path: Path, encoding: str) -> None:
    body = PATCH.partition("\n\n")[2]
    text = {"base64": base64.encodebytes(body.encode()).decode(),
            "quoted-printable": body.replace("=", "=3D").replace("int answer", "int=20answer"),
            "8bit": body.replace("\n", "\r\n")}[encoding]  # fmt: skip
    head = "From: a@example.org\nSubject: =?utf-8?q?=5BPATCH=5D_say_seven?=\nMIME-Version: 1.0\n"
    head += f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n"
    (patch,) = series(tmp_path, head + text, "mail.eml")
    assert patch.subject == "say seven"
    tree = write_tree(tmp_path / "tree")
    apply_patch(patch, tree, "base", find_toolchain())
    assert "return 7" in (tree / "answer.c").read_text()


def test_new_and_removed_files_are_touched(tmp_path: Path) -> None:
    text = (
        "--- /dev/null\n+++ b/net/new.c\n@@ -0,0 +1 @@\n+int x;\n"
        "--- a/net/old.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int y;\n"
        "diff --git a/net/a.c b/net/b.c\nsimilarity index 100%\n"
        "rename from net/a.c\nrename to net/b.c\n"
    )
    (patch,) = series(tmp_path, text)
    assert patch.touched == ("net/a.c", "net/b.c", "net/new.c", "net/old.c")


def test_everything_wrong_with_files_is_said_at_once(tmp_path: Path) -> None:
    for name, text in {
        "empty": "",
        "prose": "Dear list,\n\nplease find nothing attached.\n",
        "outside": "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n",
        "binary": f"diff --git{DIFF}\nGIT binary patch\n",
    }.items():
        (tmp_path / name).write_text(text)
    names = ("empty", "prose", "outside", "binary", "absent")
    with pytest.raises(ConfigurationError) as caught:
        read_series([tmp_path / name for name in names])
    said = caught.value.problems
    assert len(said) == 5
    for problem, words in zip(
        said, ("no patch", "no patch", "not below", "binary", "cannot be read"), strict=True
    ):
        assert words in problem


@pytest.mark.parametrize(
    ("change", "words"),
    [(("return 0", "return 1"), "answer.c: hunk 1 at line 1 finds other lines there"),
     (("return 0", "return 7"), "that source has all of it already"),
     (("a/answer.c b/", "a/answer.c b/"), "answer.c is not in that source")],
)  # fmt: skip
def test_what_does_not_apply_is_named(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    (patch,) = series(tmp_path, PATCH)
    files = {name: text.replace(*change) for name, text in FILES.items()}
    if "not in that" in words:
        files.pop("answer.c")
    tree = write_tree(tmp_path / "tree", files)
    with pytest.raises(PatchError) as caught:
        apply_patch(patch, tree, "linux 9.9.3", find_toolchain())
    assert words in str(caught.value)
    assert "0001-answer-say-seven.patch does not apply to linux 9.9.3" in str(caught.value)
    assert caught.value.exit_code == EXIT_MISSING


def test_the_fuzz_with_which_a_patch_would_fit_is_said_and_taken(tmp_path: Path) -> None:
    (patch,) = series(tmp_path, PATCH)
    other = {**FILES, "answer.c": FILES["answer.c"].replace('#include "answer.h"', "// answer")}
    tree = write_tree(tmp_path / "tree", other)
    with pytest.raises(PatchError, match="with 1 line of fuzz it would fit: give --fuzz 1"):
        apply_patch(patch, tree, "linux", find_toolchain())
    assert (tree / "answer.c").read_text() == other["answer.c"]
    fuzzy = replace(patch, fuzz=1)
    apply_patch(fuzzy, tree, "linux", find_toolchain())
    assert "return 7" in (tree / "answer.c").read_text()
    assert len({patch.sha256, fuzzy.sha256, replace(patch, reverse=True).sha256}) == 3


def test_what_is_there_already_can_be_taken_back(tmp_path: Path) -> None:
    (patch,) = series(tmp_path, PATCH)
    tree = write_tree(tmp_path / "tree")
    apply_patch(patch, tree, "linux", find_toolchain())
    with pytest.raises(PatchError, match="has all of it already; give --reverse"):
        apply_patch(patch, tree, "linux", find_toolchain())
    (back,) = read_series([tmp_path / "a.mbox"], reverse=True)
    assert (back.name, back.reverse) == ("0001-taken-back-answer-say-seven.patch", True)
    apply_patch(back, tree, "linux", find_toolchain())
    assert (tree / "answer.c").read_text() == FILES["answer.c"]
    with pytest.raises(PatchError, match="has none of it; leave out --reverse"):
        apply_patch(back, tree, "linux", find_toolchain())


def test_a_series_is_taken_back_from_its_end(tmp_path: Path) -> None:
    files = [tmp_path / "first.patch", tmp_path / "second.patch"]
    for file in files:
        file.write_text(PATCH.partition("\n\n")[2])
    back = read_series(files, reverse=True)
    assert [patch.subject for patch in back] == ["taken back: second", "taken back: first"]
