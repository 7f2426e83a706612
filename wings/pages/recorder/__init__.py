"""The recorder: loads a live page once in a real browser and keeps every byte of it."""

from wings.pages.recorder.order import RecordError, RecordOrder
from wings.pages.recorder.session import record

__all__ = ["RecordError", "RecordOrder", "record"]
