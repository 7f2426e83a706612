"""What a kernel's leak detector says; all else: tests/analysis/records/test_kernel_warnings.py."""

from __future__ import annotations

from testbed.base import places
from testbed.base.kernel_warning import LEAKS, parse_warnings

OF_7_3 = f"""\
guest init: {LEAKS}
[  137.176000] kmemleak: unreferenced object 0x6144d400 (size 256):
[  137.176000] kmemleak:   comm "softirq", pid 0, jiffies 4294678337
[  137.176000] kmemleak:   hex dump (first 32 bytes):
[  137.176000] kmemleak:     01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
[  137.176000] kmemleak:   backtrace (crc ce3371cb):
[  137.176000] kmemleak:     save_stack_trace+0x2a/0x30
[  137.176000] kmemleak:     set_track_prepare+0x49/0x70
[  137.176000] kmemleak:     __create_object+0x2b/0xc0
[  137.176000] kmemleak:     kmemleak_alloc+0x31/0x40
[  137.176000] kmemleak:     __kmalloc_cache_noprof+0x1a7/0x310
[  137.176000] kmemleak:     tcp_fin+0x2f/0x1b0
[  137.176000] kmemleak:     tcp_data_queue+0xc93/0x1270
[  143.176000] kmemleak: unreferenced object (percpu) 0x61673900 (size 8):
[  143.176000] kmemleak:   comm "nginx", pid 21, jiffies 4294755917
[  143.176000] kmemleak:   backtrace (crc 0):
[  143.753000] reboot: Power down
"""
OF_6_1 = """\
[   90.000000] kmemleak: unreferenced object 0x6144d400 (size 256):
[   90.000000] kmemleak:   comm "softirq", pid 0, jiffies 4294678337 (age 12.340s)
[   90.000000] kmemleak:   backtrace:
[   90.000000] kmemleak:     [<(____ptrval____)>] __kmem_cache_alloc_node+0x19f/0x230
[   90.000000] kmemleak:     [<(____ptrval____)>] tcp_fin+0x2f/0x1b0
"""


def test_what_leaked_is_named_by_the_function_that_allocated_it() -> None:
    (first, lines), (other, few) = parse_warnings(OF_7_3)
    assert first == "kmemleak: 256 bytes leaked, allocated in tcp_fin+0x2f/0x1b0"
    assert lines == (
        'comm "softirq", pid 0, jiffies 4294678337', "backtrace (crc ce3371cb):",
        "tcp_fin+0x2f/0x1b0", "tcp_data_queue+0xc93/0x1270",
    )  # fmt: skip
    assert (other, few[0].partition(",")[0]) == ("kmemleak: 8 bytes leaked", 'comm "nginx"')
    ((older, _),) = parse_warnings(OF_6_1)
    assert older == first


def test_init_says_what_is_looked_for() -> None:
    assert f'"{LEAKS}"' in (places.ROOT / "testbed" / "native" / "init.c").read_text()
