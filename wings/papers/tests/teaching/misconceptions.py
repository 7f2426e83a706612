"""What students believe: wrong solutions by lab and answer, each of which a self-check refuses."""

from __future__ import annotations

BELIEFS: dict[str, dict[str, str]] = {
    "1-handshake": {
        "one way only": "handshake_ms = lambda rtt_ms, up_kbit, down_kbit: rtt_ms / 2",
        "three packets wait": "handshake_ms = lambda rtt_ms, up_kbit, down_kbit: 1.5 * rtt_ms",
        "packets take no time": "handshake_ms = lambda rtt_ms, up_kbit, down_kbit: rtt_ms",
        "bytes are bits": "handshake_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "rtt_ms + 60 / up_kbit + 60 / down_kbit",
        "the request does not count": "first_byte_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (60 + 52) * 8 / up_kbit + (60 + 52 + 1500) * 8 / down_kbit",
        "an ACK costs nothing": "first_byte_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (60 + 542) * 8 / up_kbit + (60 + 1500) * 8 / down_kbit",
        "the server's ACK costs nothing": "first_byte_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (60 + 52 + 542) * 8 / up_kbit + (60 + 1500) * 8 / down_kbit",
        "only data come down": "first_byte_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (60 + 52 + 542) * 8 / up_kbit + 1500 * 8 / down_kbit",
        "a handshake is measured": "handshake_ms = lambda handshake_ms: handshake_ms",
        "a byte is measured": "first_byte_ms = lambda first_byte_ms: first_byte_ms",
        "a share is no percentage": "share_pct = {key: v / 100 for key, v in share_pct.items()}",
        "all handshakes are alike": "handshakes_ms = connections * 101.996",
        "a SYN-ACK is a connection too": "connections = 2 * connections",
    },
    "2-fast-open": {
        "a cookie has no bytes": "cached_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "rtt_ms + (60 + 490) * 8 / up_kbit + (60 + 1500) * 8 / down_kbit",
        "the server's ACK costs nothing": "plain_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (60 + 52 + 542) * 8 / up_kbit + (60 + 1500) * 8 / down_kbit",
        "no ACK beside a new cookie": "stale_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (562 + 542) * 8 / up_kbit + (60 + 12 + 1500) * 8 / down_kbit",
        "a new cookie has no bytes": "stale_ms = lambda rtt_ms, up_kbit, down_kbit: "
        "2 * rtt_ms + (562 + 542) * 8 / up_kbit + (60 + 52 + 1500) * 8 / down_kbit",
        "a plain byte is measured": "plain_ms = lambda first_byte_ms: first_byte_ms",
        "an early byte is measured": "cached_ms = lambda first_byte_ms: first_byte_ms",
        "a late byte is measured": "stale_ms = lambda first_byte_ms: first_byte_ms",
        "Fast Open saves nothing": "cached_ms = plain_ms",
        "stale is like none": "stale_ms = plain_ms",
        "stale is like valid": "stale_ms = cached_ms",
        "a full packet fits": "most_bytes = 1460",
        "the cookie's option too": "most_bytes = 1500 - 60 - 12",
        "a SYN is no byte": 'bytes_seen = {**bytes_seen, "valid: ack": 490}',
        "stale data are taken": 'bytes_seen = {**bytes_seen, "stale: ack": 491}',
    },
    "3-table-1": {
        "of the shorter time": "improvement_pct = lambda plt_off_s, plt_on_s: "
        "(plt_off_s - plt_on_s) / plt_on_s * 100",
        "it is in the table": "improvement_pct = lambda improvement_pct: improvement_pct",
        "payload without headers": "uplink_s = {key: v * 490 / 542 for key, v in uplink_s.items()}",
        "kilobits of 1024": "uplink_s = {key: v / 1.024 for key, v in uplink_s.items()}",
        "per 200 ms": "round_trips = {key: v / 2 for key, v in round_trips.items()}",
        "another row": 'furthest = ("wikipedia", 100)',
        "another page": 'furthest = ("amazon", 200)',
    },
    "4-initial-window": {
        "no slow start": "flights = lambda initcwnd_segments: -(-43 // initcwnd_segments)",
        "segments rounded down": "flights = lambda initcwnd_segments: "
        "math.ceil(math.log2(42 / initcwnd_segments + 1))",
        "no handshake": "fetch_ms = lambda initcwnd_segments: flights(initcwnd_segments) * 200",
        "all packets count": "fetch_ms = lambda initcwnd_segments: "
        "(1 + flights(initcwnd_segments)) * 200 + 43 * 1514 * 8 / 10_000",
        "a fetch is measured": "fetch_ms = lambda fetch_ms: fetch_ms",
        "one less is enough": "smallest = {**smallest, 3: 6}",
        "the head is free": "largest_bytes = 14_480",
    },
    "5-buffer": {
        "bytes are bits": "full_ms = lambda buffer_bytes, down_kbit: buffer_bytes / down_kbit",
        "both ways": "full_ms = lambda buffer_bytes, down_kbit: 2 * buffer_bytes * 8 / down_kbit",
        "one way": "pipe_bytes = lambda rtt_ms, down_kbit: rtt_ms * down_kbit / 16",
        "only the queue": "call_ms = lambda rtt_ms, buffer_bytes, down_kbit: "
        "full_ms(buffer_bytes, down_kbit)",
        "only the way": "call_ms = lambda rtt_ms, buffer_bytes, down_kbit: rtt_ms / 2",
        "a pipe is measured": "pipe_bytes = lambda pipe_bytes: pipe_bytes",
        "a way is measured": "call_ms = lambda way_ms: way_ms",
        "its own packet": "fair_wait_ms = 200 * 8 / 4000",
        "at once": "codel_drop_ms = codel_drop_ms - 100",
        "the other line": "uplink_packet_ms = 3.0",
    },
    "6-overload": {
        "eight segments": "connection_ms = 4.5",
        "a SYN is a segment": "capacity_per_s = 1000 / 4.5",
        "refusals cost nothing": "replies_per_s = lambda rate_per_s: min(rate_per_s, 1000 / 4.75)",
        "all are answered": "replies_per_s = lambda rate_per_s: rate_per_s",
        "no queue": "response_ms = lambda rate_per_s: 4.75",
        "a shorter queue": "response_ms = lambda rate_per_s: 30 / replies_per_s(rate_per_s) * 1000",
        "responses are measured": "response_ms = lambda response_mean_ms: response_mean_ms",
        "a second each": "again_s = {1: 1.0, 2: 2.0}",
        "of the rate": "left_pct = worst / 450 * 100",
    },
    "7-bufferbloat": {
        "bytes are bits": "full_ms = lambda buffer_bytes, up_kbit: buffer_bytes / up_kbit",
        "the upload does not matter": "call_ms = lambda rtt_ms: rtt_ms / 2",
        "it waits both ways": "call_ms = lambda rtt_ms, buffer_bytes, up_kbit: "
        "rtt_ms + 2 * full_ms(buffer_bytes, up_kbit)",
        "a wait is measured": "full_ms = lambda up_peak_ms: up_peak_ms",
        "its own packet": "fair_wait_ms = 200 * 8 / 2000",
        "the line down": "fair_wait_ms = 1500 * 8 / 20000",
        "all of it waits": "waits_in_a_row = with_upload['plt_ms'] / with_upload['up_peak_ms']",
        "than without the upload": "times_faster = with_upload['plt_ms'] / "
        "large.loc[('fifo', 'call'), 'plt_ms']",
    },
    "8-round-trips": {
        "a ticket saves a round trip": "before = before | {'resumption': 1}",
        "early data is zero over TCP": "before = before | {'early data': 0}",
        "Fast Open saves all of TCP and TLS": "before = before | {'Fast Open': 0}",
        "HTTP/3 is zero": "before = before | {'HTTP/3': 0}",
        "an answer takes no round trip": "first_byte_ms = lambda trips, rtt_ms: trips * rtt_ms",
        "always one": "first_byte_ms = lambda rtt_ms: 3 * rtt_ms",
        "half a hello is a hello": "large_hello = 1",
        "savings add up": "both = 0",
    },
}
