"""A comparison as JUnit XML: a test case for each cell.

The elements are those of the schema that Jenkins, GitLab and GitHub's reporters read (Jenkins'
junit-10.xsd).  Different is a failure; inconclusive is skipped, since nothing failed and nothing
was shown; the exit code tells it from success.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from analysis.regression.compare.comparison import CellFinding, Comparison
from analysis.regression.compare.phrases import (
    headline,
    name_cell,
    packet_lines,
    plain,
    rule,
    sentence,
    under_test,
)

CLASS = "firstflight.compare"
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may hold, not even escaped (section 2.2)."""


def render_junit(comparison: Comparison) -> str:
    """Return the document; times are 0, since a comparison of cells takes none that matters."""
    counts = comparison.counts
    totals = {
        "name": "firstflight compare",
        "tests": str(len(comparison.cells)),
        "failures": str(counts["different"]),
        "errors": "0",
        "time": "0",
    }
    suites = Element("testsuites", totals)
    suite = SubElement(suites, "testsuite", totals | {"skipped": str(counts["inconclusive"])})
    properties = SubElement(suite, "properties")
    for name in ("base", "new", "kernel", "alpha", "min_effect_pct"):
        told = xml_text(str(getattr(comparison, name)))
        SubElement(properties, "property", {"name": name, "value": told})
    for cell in comparison.cells:
        _case(suite, comparison, cell)
    notes = [*under_test(comparison), *comparison.notes, rule(comparison), headline(comparison)]
    SubElement(suite, "system-out").text = xml_text("\n".join(notes))
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


def xml_text(text: str) -> str:
    """``text`` without characters that XML cannot hold."""
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _case(suite: Element, comparison: Comparison, cell: CellFinding) -> None:
    name = xml_text(name_cell(comparison, cell))
    case = SubElement(suite, "testcase", {"classname": CLASS, "name": name, "time": "0"})
    told = xml_text(plain(sentence(comparison, cell)))
    more = xml_text(plain("\n".join(packet_lines(cell))))
    counted = comparison.counted(cell)
    if counted == "different":
        kind = cell.direction or "changed"
        failure = SubElement(case, "failure", {"message": told, "type": kind})
        failure.text = more or told
    elif counted == "inconclusive":
        SubElement(case, "skipped", {"message": told})
    else:
        SubElement(case, "system-out").text = told
