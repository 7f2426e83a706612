from __future__ import annotations

from threading import Event

from testbed.base.heartbeat import repeating


def test_what_takes_long_is_said_again_until_it_ends() -> None:
    lines: list[str] = []
    heard = Event()

    def tell(line: str) -> None:
        lines.append(line)
        if len(lines) == 4:
            heard.set()

    with repeating(tell, 0.001) as reported:
        reported("compiling")
        assert heard.wait(60)
    count = len(lines)
    assert lines[0] == "compiling"
    assert all(line.endswith(" s so far: compiling") for line in lines[1:])
    assert len(lines) == count  # nobody speaks after the end
