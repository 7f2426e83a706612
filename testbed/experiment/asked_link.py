"""Link that an experiment file asks for, by profile and sweep, and what no link could do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base import places
from testbed.experiment.profiles import Profile
from testbed.kinds.experiment_file import value_at
from testbed.model import LinkSpec
from testbed.model.impairments import find_problems
from testbed.model.knob import declared
from testbed.traces.catalogue import find_problem


@dataclass(frozen=True, slots=True)
class AskedLink:
    """The link in the ``values`` of a file, and the ``profiles`` that they name.

    ``where`` gives the place of a key, such as ``a.toml:3``.
    """

    values: Mapping[str, Any]
    profiles: Mapping[str, Profile]
    where: Callable[[tuple[str, ...]], str]

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The knobs of the link that are swept, each with its values."""
        names = {each.name for each in declared(LinkSpec)}
        swept = self.values.get("sweep", {})
        return {name: values for name, values in swept.items() if name in names}

    def find_small_buffers(self) -> Iterator[str]:
        """Yield a sentence for each buffer that cannot hold one packet."""
        packets = itertools.product(self._all_of("mtu_bytes"), self._all_of("framing_bytes"))
        largest = max(mtu + framing for mtu, framing in packets)
        for size in self._all_of("buffer_bytes"):
            if size < largest:
                yield (
                    f"{self._place('buffer_bytes')}: a buffer of {size} bytes cannot hold "
                    f"one packet of {largest} bytes (mtu_bytes + framing_bytes); allowed: "
                    f"{largest} and up"
                )

    def find_impossible(self, timeout_s: float) -> Iterator[str]:
        """Yield a sentence for each thing that no link could do in a point of the sweep, once."""
        found: dict[tuple[str, str], None] = {}
        axes = self.axes
        for point in itertools.product(*axes.values()):
            chosen = self.values.get("link", {}) | dict(zip(axes, point, strict=True))
            if chosen.get("profile") in self.profiles:  # others are named where they are read
                chosen |= self.profiles[chosen["profile"]].values
            spec = LinkSpec(**chosen)
            found.update(dict.fromkeys(find_problems(spec, timeout_s)))
        for name, sentence in found:
            yield f"{self._place(name)}: {sentence}"

    def find_wrong_traces(self, beside: Path) -> Iterator[str]:
        """Yield a sentence for each trace that is not there, and what is said of one for nothing.

        ``beside`` is the folder of the file.
        """
        knobs = ("trace_down", "trace_up", "hop_down", "hop_up")
        named = {knob: [*filter(None, self._all_of(knob))] for knob in knobs}
        for knob, names in named.items():
            for name in names:
                problem = find_problem(name, beside, places.TRACES)
                if problem is not None:
                    yield f"{self._place(knob)}: {problem}"
        for knob in ("trace_end", "trace_phase"):
            if not any(named.values()) and self._all_of(knob) != [getattr(LinkSpec(), knob)]:
                yield (
                    f"{self._place(knob)}: there is no trace; set link.trace_down or "
                    "link.trace_up, or leave it out"
                )

    def _place(self, knob: str) -> str:
        """Return where a knob of the link is, and what it is called there."""
        key = ("sweep" if knob in self.axes else "link", knob)
        return f"{self.where(key)}: {'.'.join(key)}"

    def _all_of(self, name: str) -> list[Any]:
        """Return the values of a knob in all conditions: of profiles, swept, fixed, or default."""
        stated = [each.values[name] for each in self.profiles.values() if name in each.values]
        if self.profiles and len(stated) == len(self.profiles):
            return stated
        if name in self.axes:
            return [*stated, *self.axes[name]]
        fixed = value_at(self.values, ("link", name))
        return [*stated, getattr(LinkSpec(), name) if fixed is None else fixed]
