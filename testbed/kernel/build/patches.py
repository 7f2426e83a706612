"""Patch series: kernel patches from files and mailboxes, in the order in which git am takes them.

A mailbox is split where git-mailsplit(1) splits one, and a mail is decoded (RFC 2045) before its
patch is applied; mails without a patch, such as cover letters, are passed over.  Patches are
applied by patch(1) without fuzz, unless it is asked for: context that differs is a reason to stop,
as it is for git am.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path, PurePosixPath

from testbed.base import proc
from testbed.base.errors import EXIT_MISSING, ConfigurationError, TestbedError
from testbed.base.units import format_count
from testbed.kernel.build.toolchain import Toolchain

MAX_BYTES = 16 << 20
"""The largest file of patches that is read."""

MOST_FUZZ = 2
"""More than this of the three lines of context that patches have says nothing of the place."""

_FROM = re.compile(rb"^From \S+ .*\d\d:\d\d:\d\d .*(?:19|20)\d\d.*$", re.MULTILINE)
_HEADER = re.compile(rb"\A(?:[A-Za-z][A-Za-z0-9-]*:.*\n(?:[ \t].*\n)*)+\n")
_FILES = re.compile(r"^--- (\S+)[^\n]*\n\+\+\+ (\S+)[^\n]*\n@@ ", re.MULTILINE)
_RENAMES = re.compile(r"^(?:rename|copy) (?:from|to) (\S+)$", re.MULTILINE)
_MODES = re.compile(r"^diff --git a/(\S+) b/\1\n(?:new|deleted) file mode", re.MULTILINE)
_TAG = re.compile(r"^\s*(?:\[[^\]]*\]\s*)+")
_NOWHERE = "/dev/null"
_APPLY_S = 60.0


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch: the name of its file, what it is about, and its text.

    Attributes:
        name: a file name, such as ``0001-tcp-open-the-window-sooner.patch``.
        subject: the mail's subject without its tag, or the name of the file that it came in.
        text: what patch(1) reads.
        fuzz: how many lines at the ends of a hunk's context may differ.
        reverse: whether it is taken back.
    """

    name: str
    subject: str
    text: str
    fuzz: int = 0
    reverse: bool = False

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, hex; with how it is applied, if that is not as git am does."""
        how = f"\0fuzz {self.fuzz}, reverse {self.reverse}" if self.fuzz or self.reverse else ""
        return hashlib.sha256(f"{self.text}{how}".encode()).hexdigest()

    @property
    def touched(self) -> tuple[str, ...]:
        """The files of the source that it changes, makes or removes, relative, sorted."""
        return tuple(sorted(set(_touched(self.text))))


class PatchError(TestbedError):
    """A patch does not apply; the message names its file, the hunk and what it was applied to."""

    exit_code = EXIT_MISSING


def read_patch(file: Path) -> Patch:
    """Return a patch of ours, under the name of its file."""
    return Patch(file.name, file.stem, file.read_text("utf-8"))


def read_series(
    files: Sequence[Path], first: int = 1, *, fuzz: int = 0, reverse: bool = False
) -> tuple[Patch, ...]:
    """Return the patches in ``files`` in order; their names are numbered from ``first``.

    Those that are taken back come in the other order.

    Raises:
        ConfigurationError: with a sentence for each file that cannot be read or has no patch.
    """
    problems: list[str] = []
    patches: list[tuple[str, str]] = []
    for file in files:
        try:
            data = _read(file)
            parts = list(_split(data, file.name))
            if not parts:
                raise ValueError("holds no patch: no file is changed in it, as by `diff -u`")
            for _, text in parts:
                _check(text)
            patches += parts
        except ValueError as error:
            problems.append(f"{file}: {error}")
    if problems:
        raise ConfigurationError(problems)
    if reverse:
        patches = [(f"taken back: {subject}", text) for subject, text in reversed(patches)]
    return tuple(
        Patch(f"{number:04d}-{_slug(subject)}.patch", subject, text, fuzz, reverse)
        for number, (subject, text) in enumerate(patches, first)
    )


def apply_patch(patch: Patch, tree: Path, base: str, toolchain: Toolchain) -> None:
    """Apply ``patch`` to the files in ``tree``, by the patch(1) of ``toolchain``.

    ``base`` names what is in ``tree``, for the message.

    Raises:
        PatchError: it does not apply; ``tree`` holds part of it.
    """
    before = {name: _content(tree / name) for name in patch.touched}
    done = _run_patch(toolchain, tree, patch)
    if done.returncode == 0:
        return
    failures = "; ".join(_failures(done.stdout)) or (done.stdout + done.stderr).strip()[-500:]
    for name, content in before.items():
        _put_back(tree / name, content)
    remedy = "rebase it on that source, or choose another --base"
    fuzz = _fuzz_that_fits(toolchain, tree, patch)
    opposite = replace(patch, reverse=not patch.reverse)
    if _run_patch(toolchain, tree, opposite, "--dry-run").returncode == 0:
        failures = "that source has all of it already"
        remedy = "give --reverse to see what it is worth by taking it back"
        if patch.reverse:
            failures, remedy = "that source has none of it", "leave out --reverse"
    elif fuzz is not None:
        lines = format_count(fuzz, "line")
        remedy = (
            f"with {lines} of fuzz it would fit: give --fuzz {fuzz} if that is the right place, "
            f"or {remedy}"
        )
    taken = "cannot be taken back from" if patch.reverse else "does not apply to"
    raise PatchError(f"{patch.name} {taken} {base}: {failures}; {remedy}")


def _fuzz_that_fits(toolchain: Toolchain, tree: Path, patch: Patch) -> int | None:
    """Return the least fuzz with which ``patch`` would apply; ``None``: with none."""
    more = range(patch.fuzz + 1, MOST_FUZZ + 1)
    fits = (
        n for n in more
        if _run_patch(toolchain, tree, replace(patch, fuzz=n), "--dry-run").returncode == 0
    )  # fmt: skip
    return next(fits, None)


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _put_back(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _run_patch(toolchain: Toolchain, tree: Path, patch: Patch, *words: str) -> proc.Completed:
    way = "--reverse" if patch.reverse else "--forward"
    argv = [toolchain.program("patch"), "-p1", f"-F{patch.fuzz}", "--force",
            "--no-backup-if-mismatch", "-r", "-", way, *words]  # fmt: skip
    env = toolchain.environment
    return proc.run(argv, cwd=tree, env=env, stdin=patch.text, check=False, timeout_s=_APPLY_S)


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES >> 20} MiB, which no patch is")
    return data.replace(b"\r\n", b"\n")


def _split(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    """Yield subject and text of each patch in a file."""
    places = (match.start() for match in _FROM.finditer(data))
    starts = [start for start in places if start == 0 or data[:start].endswith(b"\n\n")]
    if starts and not data[: starts[0]].strip():
        for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
            yield from _from_mail(data[start:end].partition(b"\n")[2], name)
    elif _HEADER.match(data) and re.search(rb"^subject:", data, re.MULTILINE | re.IGNORECASE):
        yield from _from_mail(data, name)
    else:
        text = _decode(data)
        if set(_touched(text)):
            yield Path(name).stem, text


def _from_mail(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    message = BytesParser(EmailMessage, policy=policy.default).parsebytes(data)
    for part in message.walk():
        if part.is_multipart() or part.get_content_maintype() != "text":
            continue
        payload = part.get_payload(decode=True)
        text = _decode(payload.replace(b"\r\n", b"\n") if isinstance(payload, bytes) else b"")
        if set(_touched(text)):
            subject = " ".join(str(message["subject"] or Path(name).stem).split())
            yield _TAG.sub("", subject) or subject, text


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _touched(text: str) -> Iterator[str]:
    for pair in _FILES.findall(text):
        yield from (_less_one(name) for name in pair if name != _NOWHERE)
    yield from _RENAMES.findall(text)
    yield from _MODES.findall(text)


def _less_one(name: str) -> str:
    """Return a path without its first folder, as ``patch -p1`` takes it."""
    return name.partition("/")[2] or name


def _check(text: str) -> None:
    """Refuse what patch(1) could not apply, or would apply elsewhere than in the source."""
    if "\nGIT binary patch\n" in text:
        raise ValueError("changes a binary file, which a kernel's patch does not")
    if re.search(r'^(?:---|\+\+\+) "', text, re.MULTILINE):
        raise ValueError("names a file with characters that git has to quote")
    for name in _touched(text):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"names the file {name!a}, which is not below the source")


def _slug(subject: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:52].rstrip("-") or "patch"


def _failures(said: str) -> Iterable[str]:
    """Yield a phrase for each hunk, or file, of which patch(1) says that it does not fit."""
    name = "?"
    for line in said.splitlines():
        if match := re.match(r"(?:patching|checking) file (\S+)", line):
            name = match.group(1)
        elif match := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            yield f"{name}: hunk {match.group(1)} at line {match.group(2)} finds other lines there"
        elif match := re.match(r"\|\+\+\+ \S*?/(\S+)", line):
            name = match.group(1)
        elif line.startswith("No file to patch"):
            yield f"{name} is not in that source"
