"""What the processes of a load map is named in the environment: a package, or a file's digest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.base import places
from testbed.setup.programs import programs_of, read_files, read_owners
from tests.acceptance.house import House, Plant, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "tum-website"
KEPT = "server.log"  # written only if the server complains
LOAD = "            load = client.load(order)\n"
WATCHED = """\
            import threading
            from pathlib import Path

            mapped, over = set(), threading.Event()

            def watch():
                while not over.wait(0.02):
                    for maps in Path("/proc").glob("[0-9]*/maps"):
                        try:
                            lines = maps.read_text("utf-8", "replace").splitlines()
                        except OSError:  # it has ended
                            continue
                        mapped.update(line[73:] for line in lines)

            watching = threading.Thread(target=watch)
            watching.start()
            try:
                load = client.load(order)
            finally:
                over.set()
                watching.join()
                (site.out / "server.log").write_text("\\n".join(sorted(mapped)))
"""
EXPECTED = {
    "graph": {"nginx", "libc6"},
    "wget2": {"nginx", "libc6", "wget2", "libgnutls30"},
    "chromium": {"nginx", "libc6", "chromium-headless-shell", "libnss3"},
}


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    shutil.copytree(places.ROOT / "pages" / PAGE, house.pages / PAGE)


@pytest.mark.parametrize("client", EXPECTED)
def test_every_mapped_file_is_named(house: House, plant: Plant, client: str) -> None:
    plant("kinds/page_load/performance.py", LOAD, WATCHED)
    ran = house.run(page=PAGE, client=client, rtt_ms=20)
    (record,) = ran.records
    assert_ok(record)
    lines = (ran.folder / "trials" / record.trial_id / KEPT).read_text().splitlines()
    files = {Path(line) for line in lines if line.startswith("/usr/")}
    owners = read_owners(files)
    parts = read_files(programs_of((client,)))
    packages = {path: {name.partition(":")[0] for name in owners[path]} for path in owners}
    seen = set().union(*packages.values())
    assert EXPECTED[client] <= seen
    unnamed = {
        path: packages.get(path)
        for path in files
        if f"file.{path}" not in parts
        and not any(f"package.{name}" in parts for name in packages.get(path, ()))
    }
    assert unnamed == {}
