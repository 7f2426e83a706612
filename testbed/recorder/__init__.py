"""The recorder: loads a live page once in a real browser and keeps every byte of it."""

from testbed.recorder.order import RecordError, RecordOrder
from testbed.recorder.session import record

__all__ = ["RecordError", "RecordOrder", "record"]
