"""Other machines, all of them on this one: everything listens on loopback, in folders of a test's.

Each is started by the tests and ended by its process id; nothing of the machine's configuration is
read or written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import places
from testbed.setup.python_packages import MANY, ensure_packages
from tests.many.dask_cluster import Dask, serving_dask
from tests.many.hosts import Hosts, serving_hosts
from tests.many.slurm import Slurm, serving_slurm
from tests.many.stores import Bucket, Host, serving_s3, serving_ssh
from tests.open_folder import open_folder

CLUSTER = "requirements-cluster"
SNAKEMAKE = "requirements-snakemake"


@pytest.fixture(scope="session")
def many() -> Path:
    """The programs of `make many-machines`."""
    return ensure_packages(MANY, places.cache(), print) / "bin"


@pytest.fixture(scope="session")
def cluster() -> Path:
    """The same, and those of tests."""
    return ensure_packages(CLUSTER, places.cache(), print) / "bin"


@pytest.fixture(scope="session")
def snakemake() -> Path:
    """Snakemake's program."""
    return ensure_packages(SNAKEMAKE, places.cache(), print) / "bin" / "snakemake"


@pytest.fixture(scope="session")
def sockets() -> Iterator[Path]:
    """A folder whose path is short enough for sockets (unix(7))."""
    with tempfile.TemporaryDirectory(prefix="ff") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def s3(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server."""
    folder = tmp_path_factory.mktemp("s3")
    with serving_s3(cluster / "moto_server", folder / "log") as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3: str, tmp_path: Path) -> Bucket:
    """An empty bucket."""
    bucket = Bucket(s3, tmp_path.name.replace("_", "-").lower())
    bucket.ask("PUT", "")
    return bucket


@pytest.fixture
def host(tmp_path: Path, sockets: Path) -> Iterator[Host]:
    """A machine that ssh reaches."""
    folder = tmp_path / "host"
    folder.mkdir()
    with tempfile.TemporaryDirectory(dir=sockets) as own, serving_ssh(folder, Path(own)) as host:
        yield host


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A Slurm cluster of two nodes."""
    with open_folder() as folder, serving_slurm(folder) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Two machines that ssh reaches by name."""
    with open_folder() as folder, serving_hosts(folder) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def dask(cluster: Path) -> Iterator[Dask]:
    """A Dask cluster of two workers."""
    with open_folder() as folder, serving_dask(cluster, folder) as dask:
        yield dask


@pytest.fixture
def dask_alone(cluster: Path) -> Iterator[Dask]:
    """The same for one test, which may end workers."""
    with open_folder() as folder, serving_dask(cluster, folder) as dask:
        yield dask
