"""The image, built whole from a bootstrapped Debian and run as an ordinary user under seccomp.

What runs take is the suite's own, handed in as a pack; `docs/containers.md` has the build from
nothing.
What only a real engine shows (networks, health checks, compose) is not held here.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.base import places
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import DEFAULT_VERSION, read_pin
from testbed.model import DEFAULT_ROOT
from testbed.setup import root_pack
from testbed.setup.parts import find_starter, gather_parts
from tests.docker.context import copy_context
from tests.docker.engine import Container, Engine

pytestmark = [
    pytest.mark.machine,
    pytest.mark.root,
    pytest.mark.guest,
    pytest.mark.slow,
    pytest.mark.nightly,
]

SUITE = "trixie"
REVISION = "0123456789abcdef"
LARGEST_BYTES = 1_150_000_000
CACHE = "/var/cache/testbed/firstflight"
COMMITTED = "analysis/baselines/nightly"


@dataclass(frozen=True, slots=True)
class Built:
    """The image that was built, what of, what was said, and a container of it."""

    context: Path
    said: str
    config: dict[str, dict[str, object]]
    container: Container


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    if os.geteuid() != 0:
        pytest.skip("buildah's chroot isolation needs root")
    for tool in ("buildah", "mmdebstrap"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed; run `make test`")
    if find_kernel(read_pin(DEFAULT_VERSION), places.cache()) is None:
        pytest.skip("the virtual kernel is not built; run `make kernel`")
    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)
    context = folder / "context"
    copy_context(context)
    export_quickly(context / "docker" / "packs" / "root.tar")
    engine = Engine(folder)
    try:
        engine.make_base(SUITE)
        file = context / "docker" / "Dockerfile"
        said = engine.build(context, file, "runtime", "firstflight", REVISION)
        config = json.loads(engine.buildah("inspect", "--type", "image", "firstflight").stdout)
        yield Built(context, said, config["Docker"], engine.start("firstflight"))
    finally:
        engine.buildah("rm", "--all", check=False)
        engine.buildah("rmi", "--all", "--force", check=False)
        shutil.rmtree(folder, ignore_errors=True)


def export_quickly(pack: Path) -> None:
    """Write a pack as ``root export`` does, but compress it little, which takes minutes less."""
    cache = places.cache()
    parts = gather_parts((DEFAULT_ROOT,), (DEFAULT_VERSION,), cache, print)
    packages = find_starter(cache, print)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(root_pack, "FILTERS", ({"id": lzma.FILTER_LZMA2, "preset": 0},))
        root_pack.write_pack(pack, parts, print, packages=packages)


@pytest.fixture(scope="module")
def notebooks(built: Built) -> Container:
    """The image with JupyterLab."""
    return start_stage(built, "notebooks")


def start_stage(built: Built, name: str) -> Container:
    """Build a stage that goes on from the image that was built, and return a container of it."""
    file = built.context / "docker" / "Dockerfile"
    text = file.read_text()
    stages = text[text.index("FROM runtime AS notebooks") : text.index("FROM runtime AS firstf")]
    alone = file.with_name("Dockerfile.stages")
    alone.write_text(stages.replace("FROM runtime", "FROM localhost/firstflight"))
    engine = built.container.engine
    engine.build(built.context, alone, name, f"firstflight-{name}", REVISION)
    return engine.start(f"firstflight-{name}")


def test_it_is_small_and_says_what_it_is(built: Built) -> None:
    labels = built.config["config"]["Labels"]
    assert isinstance(labels, dict)
    assert labels["org.opencontainers.image.revision"] == REVISION
    assert {"title", "description", "licenses", "documentation"} <= {
        name.rpartition(".")[2] for name in labels
    }
    assert built.config["config"]["User"] == "1000:0"
    health = built.config["config"]["Healthcheck"]
    assert isinstance(health, dict)
    assert health["Test"] == ["CMD", "./run.sh", "doctor"]
    # Not du(1), which ends without a word where a folder is gone that it was about to enter.
    found = built.container.shell("find / -xdev -printf '%i %k\\n' 2>/dev/null; true")
    kilobytes = dict(line.split() for line in found.splitlines())
    assert 1e8 < 1024 * sum(map(int, kilobytes.values())) < LARGEST_BYTES


def test_its_parts_are_those_that_were_handed_in(built: Built) -> None:
    assert "taken from root.tar, not built" in built.said
    assert built.container.shell("ls docker/packs") == "README.md\n"


def test_nothing_in_it_compiles_or_makes_root(built: Built) -> None:
    compilers = " ".join(f"-o -name {name}" for name in ("gcc*", "cc1", "ld.bfd", "as", "make"))
    assert (
        built.container.shell(
            "find / -xdev -path /opt/firstflight -prune -o "
            f"-type f -executable '(' -false {compilers} ')' -print"
        )
        == ""
    )
    assert built.container.shell("find / -xdev -perm /6000 -type f 2>/dev/null") == ""


def test_its_user_has_no_privilege_and_is_behind_a_filter(built: Built) -> None:
    status = built.container.shell("cat /proc/self/status")
    assert re.search(r"^Uid:\t1000\t", status, re.MULTILINE)
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\t2$", status, re.MULTILINE)


def test_doctor_says_what_the_jail_is(built: Built) -> None:
    done = built.container.run("./run.sh", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok +kernel 7\.3: .*, boots$", done.stdout, re.MULTILINE)
    assert re.search(r"^ok +jail: Landlock \d+, ", done.stdout, re.MULTILINE)
    assert "building" not in done.stderr


def test_root_has_a_jail_too(built: Built) -> None:
    # In a container of its own, for what root writes is root's.
    container = built.container.engine.start("firstflight")
    done = container.run("./run.sh", "run", "configs/quick.toml", user="0:0")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_nightly_sweep_is_the_committed_one(built: Built) -> None:
    results = "results/nightly"
    done = built.container.run("./run.sh", "run", "configs/nightly.toml", "-o", results)
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads(built.container.shell(f"cat {results}/manifest.json"))
    assert manifest["environment"]["facts"]["confinement"] == "jail"
    done = built.container.run("./run.sh", "compare", COMMITTED, results, "--across", "all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same" in done.stdout.lower()


def test_the_main_job_gives_the_committed_numbers(built: Built) -> None:
    done = built.container.run(
        *("./run.sh", "run", "configs/paper-table1.toml", "-n", "1"),
        *("--only", "page=wikipedia,rtt_ms=100", "-o", "results/table1"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^Same to the bit as the committed results .*: 2 loads", done.stdout, re.M)


def test_a_cache_that_nobody_may_write_to_will_do(built: Built) -> None:
    """Another user, in no group of the image's: the cache is read, and results are elsewhere."""
    container = built.container.engine.start("firstflight")
    stranger = "4242:4242"
    said = container.run("sh", "-c", f"touch {CACHE}/x {CACHE}/bundles/x", user=stranger).stderr
    assert said.count("Permission denied") == 2
    for argv in (
        "./run.sh doctor",
        "HOME=/tmp ./run.sh run configs/quick.toml -o /tmp/quick",
        "./run.sh report /tmp/quick",
    ):
        done = container.run("sh", "-c", argv, user=stranger)
        assert done.returncode == 0, done.stdout + done.stderr


IN_LABS = ("bootstrap/develop.sh", "--labs")
IN_NOTEBOOKS = ("bootstrap/develop.sh", "--notebooks")
PAPERS = places.ROOT / "wings" / "papers"
LABS = sorted(path.name for path in (PAPERS / "teaching" / "source").iterdir() if path.is_dir())
NOTEBOOKS = sorted(path.stem for path in (PAPERS / "notebooks").glob("*.ipynb"))
SOLVE = """
import json, sys
def read(place):
    return json.load(open(f"{place}/{sys.argv[1]}/{sys.argv[1]}.ipynb"))
solutions = {cell["metadata"]["nbgrader"]["grade_id"]: cell["source"]
             for cell in read("wings/papers/teaching/source")["cells"]
             if cell["metadata"]["nbgrader"]["solution"]}
handed_out = read("my-labs")
for cell in handed_out["cells"]:
    told = cell["metadata"]["nbgrader"]
    if told["solution"]:
        cell["source"] = solutions.pop(told["grade_id"])
assert not solutions
json.dump(handed_out, open(f"my-labs/{sys.argv[1]}/solved.ipynb", "w"))
"""
"""Writes the answers into what students of a lab were handed out."""


@pytest.fixture(scope="module")
def labs(notebooks: Container) -> Container:
    """The image in which labs were handed out."""
    hand_out = ("python", "-P", "-m", "wings.papers.teaching.hand_out", "my-labs")
    done = notebooks.run(*IN_LABS, *hand_out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "building" not in done.stderr
    assert done.stdout.count(": new") == len(LABS) == 8
    return notebooks


def execute(container: Container, inside: tuple[str, ...], notebook: str) -> str:
    """Run all cells of a notebook in the image; what they print."""
    done = container.run(
        *(*inside, "python", "-m", "nbconvert", "--to", "notebook", "--execute", notebook),
        *("--output-dir", "results"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = json.loads(container.shell(f"cat results/{Path(notebook).name}"))
    outputs = [each for cell in ran["cells"] for each in cell.get("outputs", ())]
    assert [each for each in outputs if each.get("name") == "stderr"] == []
    return "".join("".join(each.get("text", ())) for each in outputs)


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_runs_whole_where_students_get_it(labs: Container, lab: str) -> None:
    assert labs.shell(f"head -c 5 my-labs/{lab}/sheet.pdf") == "%PDF-"
    done = labs.run(*IN_LABS, "python", "-P", "-c", SOLVE, lab)
    assert done.returncode == 0, done.stderr
    printed = execute(labs, IN_LABS, f"my-labs/{lab}/solved.ipynb")
    source = json.loads((PAPERS / "teaching" / "source" / lab / f"{lab}.ipynb").read_text())
    checks = [
        cell
        for cell in source["cells"]
        if cell["cell_type"] == "code" and cell["metadata"]["nbgrader"].get("points")
    ]
    assert printed.count("✓ right") >= len(checks) > 0
    assert "Not yet." not in printed


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_whole_in_it(notebooks: Container, name: str) -> None:
    printed = execute(notebooks, IN_NOTEBOOKS, f"wings/papers/notebooks/{name}.ipynb")
    # Chromium's Table 1 is a baseline.
    assert "analysis/samples/" in printed or "analysis/baselines/paper-table1" in printed


def test_its_jupyterlab_starts(notebooks: Container) -> None:
    argv = "bootstrap/develop.sh --notebooks python -m jupyterlab --no-browser --ip=127.0.0.1"
    said = notebooks.shell(
        f"{argv} wings/papers/notebooks >/tmp/said 2>&1 & for i in $(seq 900); do "
        "grep -q 'lab?token=' /tmp/said && break; sleep 0.2; done; kill $!; wait; cat /tmp/said"
    )
    assert "http://127.0.0.1:" in said and "lab?token=" in said, said


def test_an_executor_looks_at_its_list_of_branches(built: Built) -> None:
    executor = start_stage(built, "watch")
    said = executor.shell(
        "echo '[]' > /tmp/branches.json && git --version && "
        "./run.sh kernel watch /tmp/branches.json /srv/firstflight --rounds 1 2>&1 && id -u"
    )
    assert said.startswith("git version ")
    assert said.endswith("1000\n")
    assert "error" not in said
