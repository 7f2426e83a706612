"""Pool of the workers of a Dask cluster, whatever it runs on.

A worker needs ``distributed``, and the repository: at the place that the variable FIRSTFLIGHT_HOME
says there, or where it is here.  https://distributed.dask.org, the client's API.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.base.places import ROOT
from testbed.way.pool import BatchEnd, BatchNews

if TYPE_CHECKING:
    from distributed import Client, Future

SCHEME = "dask://"
INSTALL = "make many-machines installs it"
_CONNECT_S = 10.0
_CALL = "(exec(text, names), names['perform_there'](*arguments))[1]"
"""Calls a function of whose text alone the scheduler and its workers know."""


def perform_there(home: str, request: bytes, topic: str, number: int) -> Any:
    """Perform a batch on a worker, by its own repository; this text is all that goes there."""
    import importlib
    import os
    import sys

    from distributed import get_worker

    root = os.environ.get("FIRSTFLIGHT_HOME", home)
    if not os.path.isfile(os.path.join(root, "run.sh")):  # noqa: PTH113, PTH118
        return [], f"{root} is no repository there: set FIRSTFLIGHT_HOME for its worker"
    if root not in sys.path:
        sys.path.insert(0, root)
    remote = importlib.import_module("testbed.way.remote")
    worker = get_worker()
    return remote.perform_batch(request, lambda says: worker.log_event(topic, (number, says)))


class DaskPool:
    """A connection to a scheduler (``testbed.way.cluster.Pool``)."""

    def __init__(self, address: str, client: Client) -> None:
        self._address, self._client = address, client
        self._topic = f"firstflight-{secrets.token_hex(8)}"
        self._events: SimpleQueue[BatchNews | BatchEnd] = SimpleQueue()
        self._futures: dict[int, Future] = {}
        client.subscribe_topic(self._topic, self._told)

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return self._address

    def now_s(self) -> float:
        """Return seconds of this machine's clock."""
        return time.monotonic()

    def workers(self) -> Mapping[str, int]:
        """Return the workers by address, and the threads of each.

        Raises:
            StorageError: the scheduler is gone.
        """
        self._require()
        info = self._client.scheduler_info(n_workers=-1)
        return {str(name): int(each["nthreads"]) for name, each in info["workers"].items()}

    def submit(self, number: int, worker: str, request: bytes) -> None:
        """Send a batch to a worker."""
        self._require()
        arguments = (str(ROOT), request, self._topic, number)
        text = inspect.getsource(perform_there)
        future = self._client.submit(
            *(eval, _CALL, {"text": text, "names": {"Any": None}, "arguments": arguments}),
            workers=[worker], allow_other_workers=False, pure=False, retries=0,
            key=f"{self._topic}-{number}",
        )  # fmt: skip
        self._futures[number] = future
        future.add_done_callback(lambda done: self._ended(number, done))

    def cancel(self, number: int) -> None:
        """Forget a batch."""
        future = self._futures.pop(number, None)
        if future is not None:
            with suppress(Exception):  # a scheduler that is gone has forgotten it
                future.cancel()

    def wait(self, seconds: float) -> Sequence[BatchNews | BatchEnd]:
        """Return what has come.

        Raises:
            StorageError: the scheduler is gone.
        """
        self._require()
        come: list[BatchNews | BatchEnd] = []
        with suppress(Empty):
            come.append(self._events.get(timeout=seconds))
            while True:
                come.append(self._events.get_nowait())
        return come

    def _require(self) -> None:
        if self._client.status != "running":
            raise StorageError(
                f"the scheduler at {self._address} is gone; the records so far are intact: start "
                "it and its workers again, then go on with --resume"
            )

    def _told(self, event: tuple[float, tuple[int, dict[str, Any]]]) -> None:
        _, (number, says) = event
        self._events.put(BatchNews(number, says))

    def _ended(self, number: int, future: Future) -> None:
        """Take a result; this runs in a thread of the client's."""
        if self._futures.pop(number, None) is None:
            return
        try:
            entries, problem = future.result(timeout=_CONNECT_S)
        except BaseException as error:
            entries, problem = [], f"{type(error).__name__}: {error}"
        self._events.put(BatchEnd(number, entries, problem))


def check_engine(address: str) -> None:
    """Let an address pass that names an engine which is installed.

    Raises:
        ConfigurationError: it names none.
        MissingError: it is not installed.
    """
    host, _, port = address.removeprefix(SCHEME).rpartition(":")
    if not address.startswith(SCHEME) or not host or not port.isdecimal():
        raise ConfigurationError(
            [f"--on {address}: write it as {SCHEME}HOST:PORT, the address of a Dask scheduler"]
        )
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise MissingError(
            f"--on {address}: dask.distributed is not installed; {INSTALL}"
        ) from None


@contextmanager
def open_pool(address: str) -> Iterator[DaskPool]:
    """Connect to the scheduler at ``address``, ``dask://HOST:PORT``, for the time of the block.

    Raises:
        ConfigurationError, MissingError: as ``check_engine``, or nobody listens there.
    """
    check_engine(address)
    from distributed import Client

    place = address.removeprefix(SCHEME)
    try:
        client = Client(f"tcp://{place}", timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError) as error:
        port = place.rpartition(":")[2]
        raise MissingError(
            f"--on {address}: nobody listens there ({error}); start a scheduler with "
            f"`dask scheduler --port {port}`, and workers with `dask worker {place}`"
        ) from None
    pool = DaskPool(address, client)
    try:
        yield pool
    finally:
        with suppress(Exception):
            client.close(timeout=_CONNECT_S)
