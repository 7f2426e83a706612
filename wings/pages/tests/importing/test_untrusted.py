"""Times as each recorder writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wings.pages.importing.untrusted import parse_moment

WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "2024-05-06T07:08:09.000Z", "2024-05-06T09:08:09.000+02:00", "2024-05-06T09:08:09+0200",
        "2024-05-06T07:08:09.000000000Z", "2024-05-06T07:08:09.0000000+00:00",
        "2024-05-06T07:08:09", "2024-05-06 07:08:09", " 2024-05-06T07:08:09Z ",
        "2024-05-06T07:08:09,000Z", "20240506T070809Z", "Mon, 06 May 2024 07:08:09 GMT",
        "Mon May 06 2024 09:08:09 GMT+0200 (Central European Summer Time)",
        "Mon May 06 2024 07:08:09", 1714979289, 1714979289000, 1714979289.0, "1714979289000",
        "1714979289.000",
    ],
)  # fmt: skip
def test_every_way_to_write_a_time(written: object) -> None:
    assert parse_moment(written) == WHEN


@pytest.mark.parametrize(
    "written",
    ["", "now", None, True, [], {}, -1, float("nan"), float("inf"), 10**30, "9" * 400, "0001-01-01",
     "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "Mon, 99 May 2024", "\x00", "24:00",
     "Mon May 99 2024 99:99:99 GMT+9999", "1714979289e999"],
)  # fmt: skip
def test_what_is_no_time_is_none_and_no_error(written: object) -> None:
    found = parse_moment(written)
    assert found is None or found.year == 1
