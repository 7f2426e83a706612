"""Forms of test results for other programs, by the names that options have for them."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.formats.suites import Form, write_ktap, write_tap13
from testbed.base.wings import provided

FORMS: Mapping[str, Form] = {
    "ktap": Form("KTAP as kernel tests print it", write_ktap),
    "tap13": Form("TAP 13 as netdev's CI reads it", write_tap13),
    **{form.name: form.load() for form in provided("forms")},
}
"""Those of the engine, and what wings provide to the extension point ``forms``."""
_WORDS = [form.words for form in FORMS.values()]
FORMS_HELP = f"{', '.join(_WORDS[:-1])}, or {_WORDS[-1]}"
