"""What every committed file must keep to: nothing of one machine, nothing of a registry."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

import pytest

from firstflight.reference import CONTRIBUTING, list_rooms, render_rooms

ROOT = Path(__file__).parent.parent
NOT_OURS = {".git", "__pycache__", "node_modules", "dist"}
A_USERS = {"results", "my-labs"}
"""At the top of the work tree; testbed/results is ours."""
REQUIREMENTS = sorted((ROOT / "bootstrap").glob("requirements*.txt"))
PACKAGE_LISTS = sorted((ROOT / "bootstrap").glob("packages-*.txt"))


def committed() -> list[Path]:
    """All text files of the work tree that git could hold."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [n for n in folders if n not in NOT_OURS and not n.endswith("_cache")]
        folders[:] = [n for n in folders if n != ".hypothesis"]
        if Path(folder) == ROOT:
            folders[:] = [n for n in folders if n not in A_USERS]
        found += [Path(folder) / name for name in files if name not in NOT_OURS]
    return sorted(path for path in found if b"\0" not in path.read_bytes())


TEXTS = {path.relative_to(ROOT): path.read_text() for path in committed()}


def binaries() -> list[str]:
    """All files of the work tree that are not text."""
    skipped = NOT_OURS | A_USERS
    folders = [path for path in ROOT.iterdir() if path.name not in skipped and path.is_dir()]
    files = [path for folder in folders for path in folder.rglob("*")]
    files += list(ROOT.iterdir())
    return sorted(
        str(path.relative_to(ROOT))
        for path in files
        if path.is_file()
        and not NOT_OURS & set(path.relative_to(ROOT).parts)
        and not any(part.endswith("_cache") for part in path.relative_to(ROOT).parts)
        and b"\0" in path.read_bytes()
    )


def lines_like(pattern: str) -> list[str]:
    regex = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), 1)
        if regex.search(line)
    ]


def test_no_path_of_one_machine() -> None:
    folders = "|".join(("work", "root", "home/(?!somebody)[a-z]+"))
    assert lines_like(rf"(^|[^\w.])/({folders})/") == []


def test_no_registry_host() -> None:
    # Without their endings, so that this file does not find itself.
    names = ("pypi", "pythonhosted", "registry.npmjs", "deb.debian", "security.debian")
    hosts = [re.escape(name) + r"\.(org|com)\b" for name in (*names, "nodesource")]
    assert lines_like("|".join(hosts)) == []


def test_nothing_but_pictures_for_documents_and_captures_is_binary() -> None:
    # Packs at the root are what STATUS.md has an evaluator write, and git ignores them.
    allowed = re.compile(
        r"docs/images/[a-z-]+\.png|\.hypothesis/.*|analysis/samples/scenarios/trials/\w+/\w+\.pcap"
        r"|[^/]+\.zip"
    )
    assert [name for name in binaries() if not allowed.fullmatch(name)] == []


def test_text_files_end_with_a_newline_and_have_no_stray_blanks() -> None:
    assert [str(name) for name, text in TEXTS.items() if text and not text.endswith("\n")] == []
    assert [str(name) for name, text in TEXTS.items() if "\r" in text] == []
    stray = lines_like(r"[ \t]$")
    assert [line for line in stray if ".patch:" not in line] == []


def test_scripts_can_be_run_and_nothing_else() -> None:
    wrong = [
        str(name)
        for name, text in TEXTS.items()
        if bool((ROOT / name).stat().st_mode & 0o100) != text.startswith("#!")
    ]
    assert wrong == []


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_requirements_are_pinned_and_hashed(path: Path) -> None:
    logical = path.read_text().replace("\\\n", " ")
    lines = [line for line in logical.splitlines() if line and not line.lstrip().startswith("#")]
    assert lines
    shape = re.compile(r"^[a-z0-9._-]+==\S+( ;[^-]*)?(\s+--hash=sha256:[0-9a-f]{64})+\s*$")
    assert [line[:60] for line in lines if not shape.match(line)] == []


@pytest.mark.parametrize(
    "name", ["requirements-dev", "requirements-notebooks", "requirements-many"]
)
def test_what_is_more_than_a_run_has_the_very_versions_of_a_run(name: str) -> None:
    runtime, more = (
        set(re.findall(r"^\S+==\S+", (ROOT / "bootstrap" / file).read_text(), re.MULTILINE))
        for file in ("requirements.txt", f"{name}.txt")
    )
    assert runtime
    different = {pin.partition("==")[0] for pin in runtime - more}
    # botocore's bound (requirements-many.in); the newer python-dateutil brings tzdata.
    assert different <= ({"python-dateutil", "tzdata"} if name == "requirements-many" else set())


def test_the_bucket_of_tests_has_the_very_versions_of_many_machines() -> None:
    many, cluster = (
        set(re.findall(r"^\S+==\S+", (ROOT / "bootstrap" / file).read_text(), re.MULTILINE))
        for file in ("requirements-many.txt", "requirements-cluster.txt")
    )
    assert many
    assert many <= cluster


def test_node_packages_are_locked_by_hash_without_addresses() -> None:
    locks = [path for path in TEXTS if path.name == "package-lock.json"]
    assert locks
    for path in locks:
        packages = json.loads(TEXTS[path])["packages"]
        external = {name: entry for name, entry in packages.items() if name}
        assert [name for name, entry in external.items() if "integrity" not in entry] == []
        assert [name for name, entry in external.items() if "resolved" in entry] == []


@pytest.mark.parametrize("path", PACKAGE_LISTS, ids=lambda path: path.name)
def test_every_debian_package_has_a_reason(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    shape = re.compile(r"^[a-z0-9.+-]+( >= [\d.]+)? +# \S.*$")
    assert [line for line in lines if not shape.match(line)] == []
    assert lines == sorted(lines)


def anchors(text: str) -> set[str]:
    """The headings of a document as links name them, the way GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in headings}


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for name, text in TEXTS.items():
        if name.suffix != ".md":
            continue
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
            if "://" in target:
                continue
            file = (ROOT / name.parent / target) if target else ROOT / name
            if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
                broken.append(f"{name}: {target}#{anchor}")
    assert broken == []


def test_the_index_names_every_document() -> None:
    named = re.findall(r"\]\(([^)#\s]+)", (ROOT / "docs" / "README.md").read_text())
    index = {Path(os.path.normpath(Path("docs", each))) for each in named}
    documents = {
        name for name in TEXTS
        if name.suffix == ".md"
        if name.parent == Path("docs") or name.parts[0] == "wings"
    } - {Path("docs/README.md")}  # fmt: skip
    assert any(name.parts[0] == "wings" for name in documents)
    assert sorted(documents - index) == []


def test_decisions_are_short_notes_with_a_title() -> None:
    notes = {name: text for name, text in TEXTS.items() if name.parent == Path("docs/decisions")}
    assert notes
    assert [str(name) for name, text in notes.items() if not text.startswith("# ")] == []
    assert [str(name) for name, text in notes.items() if len(text.splitlines()) > 60] == []
    assert sum(map(words, notes.values())) <= 6_000


GENERATED = {
    "command-line.md", "knobs.md", "results.md", "checks.md", "coverage-of-sources.md",
}  # fmt: skip
"""References in docs/ that `make reference` writes, and `make readme` the last."""
GENERATED_BLOCK = re.compile(r"<!-- (?!end)[^>]*-->.*?<!-- end -->", re.DOTALL)
"""What a program writes into a document."""


def words(text: str) -> int:
    """How many words a document has outside of tables and of what a program writes into it."""
    by_hand = GENERATED_BLOCK.sub("", text)
    return len(re.sub(r"^\|.*$", "", by_hand, flags=re.MULTILINE).split())


def test_the_documentation_keeps_to_its_budget_of_words() -> None:
    written = {
        name: text
        for name, text in TEXTS.items()
        if name.suffix == ".md"
        and (name == Path("README.md") or name.parts[0] in ("docs", "wings"))
        and not (name.parts[0] == "docs" and name.name in GENERATED)
    }
    assert sum(len(GENERATED_BLOCK.sub("", text).split()) for text in written.values()) <= 23_700
    assert len(written[Path("README.md")].split()) <= 1_200


def long_sentences(text: str) -> list[str]:
    """The sentences of a document's prose that have more than 40 words."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = re.sub(r"^(?:\||#| {4}).*$", "", prose, flags=re.MULTILINE)
    sentences = re.split(r"[.:;!?)]\s|\n\s*(?:\n|- |\d\. )", prose)
    return [each for each in sentences if len(each.split()) > 40]


def test_no_sentence_of_the_papers_that_all_read_first_is_long() -> None:
    assert long_sentences("A heading is\n# one\n\n" + "word " * 41) != []
    for name in ("README.md", "INSTALL.md", "REQUIREMENTS.md", "CONTRIBUTING.md", "docs/style.md"):
        assert long_sentences(TEXTS[Path(name)]) == [], name


def test_documents_that_files_point_to_exist() -> None:
    pointed = {
        target
        for name, text in TEXTS.items()
        # Pages of a wing name its own as they link them, which is tested above.
        if name.suffix != ".md" or name.parts[0] != "wings"
        for target in re.findall(r"\b(?:wings/\w+|docs)/[\w/.-]+\.md\b", text)
    }
    assert pointed
    assert [target for target in sorted(pointed) if not (ROOT / target).is_file()] == []


CODE = ("analysis", "bench", "firstflight", "testbed", "wings")


def test_no_two_public_classes_have_one_name() -> None:
    found: dict[str, list[str]] = {}
    for name, text in TEXTS.items():
        if name.suffix == ".py" and name.parts[0] in CODE and "tests" not in name.parts:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(str(name))
    assert found
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_committed_results_are_the_ones_that_are_listed() -> None:
    lines = (ROOT / "analysis" / "committed-results.txt").read_text().splitlines()
    listed = [line.split()[:2] for line in lines if not line.startswith("#")]
    there = [[kept, path.name] for kept in ("baselines", "samples")
             for path in (ROOT / "analysis" / kept).iterdir()]  # fmt: skip
    assert sorted(listed) == sorted(there)
    assert all((ROOT / "configs" / f"{name}.toml").is_file() for _, name in listed)


def test_the_table_of_rooms_is_what_the_packages_say() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert text == render_rooms(text), "run make reference"
    assert all(sentence.endswith(".") for _, sentence in list_rooms())
