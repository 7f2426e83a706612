"""HAR 1.2 as pydantic models: what the specification demands, and no undeclared name without _.

Source: http://www.softwareishard.com/blog/har-12-spec/
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from testbed.model import PageLoad

Time = Annotated[float, Field(ge=0)]
TimeOrUnknown = Annotated[float, Field(ge=-1)]
SizeOrUnknown = Annotated[int, Field(ge=-1)]


class Part(BaseModel):
    """Custom names begin with an underscore."""

    model_config = ConfigDict(extra="allow", strict=True)

    @model_validator(mode="after")
    def _only_custom_names(self) -> Part:
        undeclared = [name for name in self.model_extra or {} if not name.startswith("_")]
        if undeclared:
            raise ValueError(f"not HAR 1.2: {undeclared}")
        return self


class Program(Part):
    name: str
    version: str
    comment: str | None = None


class PageTimings(Part):
    onContentLoad: TimeOrUnknown | None = None  # noqa: N815
    onLoad: TimeOrUnknown | None = None  # noqa: N815


class HarPage(Part):
    startedDateTime: Annotated[datetime, Field(strict=False)]  # noqa: N815
    id: str
    title: str
    pageTimings: PageTimings  # noqa: N815


class Pair(Part):
    name: str
    value: str


class Request(Part):
    method: str
    url: str
    httpVersion: str  # noqa: N815
    cookies: list[dict[str, Any]]
    headers: list[Pair]
    queryString: list[Pair]  # noqa: N815
    postData: dict[str, Any] | None = None  # noqa: N815
    headersSize: SizeOrUnknown  # noqa: N815
    bodySize: SizeOrUnknown  # noqa: N815


class Content(Part):
    size: SizeOrUnknown
    compression: int | None = None
    mimeType: str  # noqa: N815
    text: str | None = None
    encoding: str | None = None


class Response(Part):
    status: int
    statusText: str  # noqa: N815
    httpVersion: str  # noqa: N815
    cookies: list[dict[str, Any]]
    headers: list[Pair]
    content: Content
    redirectURL: str  # noqa: N815
    headersSize: SizeOrUnknown  # noqa: N815
    bodySize: SizeOrUnknown  # noqa: N815


class Timings(Part):
    blocked: TimeOrUnknown | None = None
    dns: TimeOrUnknown | None = None
    connect: TimeOrUnknown | None = None
    ssl: TimeOrUnknown | None = None
    send: Time
    wait: Time
    receive: Time


class Entry(Part):
    pageref: str | None = None
    startedDateTime: Annotated[datetime, Field(strict=False)]  # noqa: N815
    time: Time
    request: Request
    response: Response
    cache: dict[str, Any]
    timings: Timings
    serverIPAddress: str | None = None  # noqa: N815
    connection: str | None = None

    @model_validator(mode="after")
    def _time_is_the_sum(self) -> Entry:
        known = self.timings.model_dump(exclude={"ssl"}, exclude_none=True)
        total = sum(v for n, v in known.items() if v != -1 and not n.startswith("_"))
        if abs(total - self.time) > 0.01:
            raise ValueError(f"{self.request.url}: time {self.time}, phases sum to {total}")
        return self


class Log(Part):
    version: str
    creator: Program
    browser: Program | None = None
    pages: list[HarPage]
    entries: list[Entry]
    comment: str | None = None

    @model_validator(mode="after")
    def _pages_exist(self) -> Log:
        unknown = {entry.pageref for entry in self.entries} - {page.id for page in self.pages}
        if self.version != "1.2" or unknown - {None}:
            raise ValueError(f"version {self.version}, unknown pages {unknown}")
        return self


class Har(Part):
    log: Log


Load = Callable[..., tuple[PageLoad, Har]]
"""Loads a site by a client of a name."""
