"""Spec of a scenario: a promise of the protocol to perform, by name and with its text."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Annotated, Literal

from testbed.model.asked import Ip
from testbed.model.knob import Knob, draws

SINCE = 3


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario: its name, and its file as it was when the trial was planned."""

    scenario: Annotated[str, Knob(
        "The promise of the protocol that is performed and judged.",
        label="Scenario", listed="scenario", since=SINCE,
        shown="scenario's script",
    )]  # fmt: skip
    text: str
    """The scenario's file (TOML), all of it."""
    kind: Literal["scenario"] = "scenario"
    """What tells it from other kinds where it is stored."""

    @property
    def ip(self) -> Ip:
        """Over which IP it is, by its file."""
        return "6" if str(tomllib.loads(self.text).get("ip", 4)) == "6" else "4"

    @property
    def boot_options(self) -> tuple[str, ...]:
        """What its kernel is booted with besides, by its file."""
        slots = tomllib.loads(self.text).get("cache_slots")
        return () if slots is None else (f"tcpmhash_entries={int(slots)}",)

    @property
    def draws(self) -> bool:
        """Whether it depends on its seed: ports and sequence numbers do, and no promise."""
        return draws(self)
