"""Entry point of the graph client's process: one order in, one result file out.

Started as ``python -I -S main.py ORDER RESULT``: isolated from the user's settings and from
installed packages, so the path to our own package is set here.  The order is the only line of a
file, which may be a named pipe: the load begins when its end has come.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time

ROOT = os.path.realpath(__file__).rpartition("/testbed/")[0]


def main(order_path: str, result_path: str) -> None:
    """Load the page that ``order_path`` describes and write the file ``result_path``."""
    from testbed.client.graph_process.discovery import build_graph
    from testbed.client.graph_process.loader import Loader

    with open(order_path, encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
        order = json.loads(file.readline())
        roots = build_graph(order["entries"], order["think_time"])
        trust = None
        if order["authority"] is not None:
            from testbed.client.graph_process.tls import Trust

            trust = Trust(order, os.environ.get("SSLKEYLOGFILE"))
        loader = Loader(order["fast_open"], order["timeout_s"], trust)
        gc.disable()  # a pause inside the load would be a pause of the browser that this imitates
        file.read()
    started = time.time()
    loader.load(roots, order["preconnect"])
    result = {
        "started": started,
        "timed_out": loader.timed_out,
        "requests": [fetch.report(loader.start) for fetch in loader.fetches],
    }
    with open(result_path, "w", encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
        json.dump(result, file)


if __name__ == "__main__":
    sys.path.insert(0, ROOT)
    main(*sys.argv[1:])
