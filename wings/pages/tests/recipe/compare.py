"""Comparison of a recording with a recording of its replay: requests, bytes, order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from testbed.base.scratch import scratch_folder
from testbed.model import Replay
from testbed.pages.build import Tell, build_page
from wings.pages.exchange import PageExchange, Recording
from wings.pages.har_export import write_archive
from wings.pages.recipe.build import capture, capture_recipe, make_canonical
from wings.pages.recipe.description import read_recipe
from wings.pages.recipe.packages import install

# Layout asks for fonts, at moments of its own; which of two comes first is chance.
_BY_LAYOUT = "font/"


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A recorded load and the load of its replay.

    ``missing`` and ``extra`` are ``METHOD URL`` of requests that only the recording or only the
    replay has, ``changed`` those answered with another status or body.  Bytes are those of
    response bodies as transferred, and of heads where their size is known (HTTP/1.1).
    ``disordered`` names the exchanges whose text or script asked for others in another order.
    """

    page: str
    requests: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    changed: tuple[str, ...]
    replay: Replay
    recorded_bytes: int
    replayed_bytes: int
    disordered: tuple[str, ...]

    @property
    def exact_pct(self) -> float:
        """Requests that were answered with their own recording, in percent of all."""
        request_count = self.replay.exact + len(self.replay.inexact) + len(self.replay.missed)
        return 100.0 * self.replay.exact / request_count if request_count else 0.0

    @property
    def bytes_error_pct(self) -> float:
        """Replayed bytes beyond the recorded ones, in percent."""
        return (self.replayed_bytes / self.recorded_bytes - 1.0) * 100.0

    @property
    def same(self) -> bool:
        """Whether requests, contents, matching and order are all the same."""
        different = (*self.missing, *self.extra, *self.changed, *self.disordered)
        return not different and self.replay.exact == self.requests and self.exact_pct == 100.0


def load_twice(folder: Path, cache: Path, tell: Tell) -> tuple[Recording, Recording, Replay]:
    """A recorded load of a recipe's page, one of its replay, and how the replay answered."""
    recipe = read_recipe(folder)
    recorded = capture_recipe(recipe, install(recipe, cache, tell), cache, tell)
    with scratch_folder("recipe") as scratch:
        scratch.chmod(0o755)
        page = scratch / recipe.name
        write_archive(page, make_canonical(recorded), licence=recipe.licence)
        replayed, replay = capture(build_page(page, scratch / "built"), scratch, tell)
    return recorded, replayed, replay


def compare(
    page: str, recorded: Recording, replayed: Recording, replay: Replay
) -> ReplayComparison:
    """Compare two loads; ``replay`` is how the requests of the second were answered."""
    before, after = (Counter(map(_name, load.exchanges)) for load in (recorded, replayed))
    first = {_name(each): (each.status, each.body) for each in recorded.exchanges}
    again = [(_name(each), (each.status, each.body)) for each in replayed.exchanges]
    orders = _orders(recorded), _orders(replayed)
    return ReplayComparison(
        page=page, requests=len(recorded.exchanges), replay=replay,
        missing=tuple((before - after).elements()), extra=tuple((after - before).elements()),
        changed=tuple(name for name, what in again if first.get(name, what) != what),
        recorded_bytes=_transferred(recorded), replayed_bytes=_transferred(replayed),
        disordered=tuple(url for url in orders[0] if orders[0][url] != orders[1].get(url)),
    )  # fmt: skip


def _name(exchange: PageExchange) -> str:
    return f"{exchange.method} {exchange.url}"


def _transferred(recording: Recording) -> int:
    return sum((each.headers_size or 0) + each.body_size for each in recording.exchanges)


def _orders(recording: Recording) -> dict[str, list[str]]:
    """Return what each exchange led to, in the order in which the page asked for it.

    When a request is sent is another matter: connections and priorities decide that, and it
    differs from load to load.
    """
    children_by_url: defaultdict[str, list[str]] = defaultdict(list)
    for exchange in sorted(recording.exchanges, key=lambda item: item.start_ms or 0.0):
        if exchange.initiator is not None and not exchange.mime.startswith(_BY_LAYOUT):
            children_by_url[exchange.initiator].append(_name(exchange))
    return dict(children_by_url)
