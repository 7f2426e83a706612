"""List of the mechanisms that act in a lab, in the order in which they do."""

from __future__ import annotations

from testbed.mechanisms.fast_open.lab import FAST_OPEN
from testbed.mechanisms.ip.lab import IP
from testbed.mechanisms.neighbours.lab import NEIGHBOURS
from testbed.mechanisms.offload.lab import OFFLOAD
from testbed.mechanisms.path_mtu.lab import PATH_MTU

ACTING = (PATH_MTU, OFFLOAD, IP, FAST_OPEN, NEIGHBOURS)
