"""Every kind of trial says what each room of the analysis asks of it."""

from __future__ import annotations

import pytest

from analysis.records.kind import RecordKind, read_description, records_of
from analysis.report.kind import ReportKind
from analysis.report.rendering import open_templates
from analysis.tables.kind import TableKind
from analysis.verdicts.compare.kind import VerdictKind
from testbed.base.errors import ConfigurationError
from testbed.kinds import KINDS

ROOMS = {"records": RecordKind, "tables": TableKind, "report": ReportKind,
         "verdicts": VerdictKind}  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_description_for_each_room(kind: str, room: str) -> None:
    assert type(read_description(kind, room)) is ROOMS[room]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_page(kind: str) -> None:
    assert "lead" in open_templates().get_template(f"{kind}/report.html.jinja").blocks


def test_an_unknown_kind_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match=r"'pageload'.*did you mean 'page_load'"):
        records_of("pageload")
