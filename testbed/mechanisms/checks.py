"""List of the checks that every kind of trial is held against, in their order.

Each speaks of the trials whose evidence has what it needs; what a kind alone leaves, its own
judgement checks.
"""

from __future__ import annotations

from testbed.mechanisms.device.proof import check_blocked, check_device
from testbed.mechanisms.ecn.proof import check_ecn
from testbed.mechanisms.fast_open.proof import check_arm, check_connected, check_counters
from testbed.mechanisms.impairments.proof import check_damage
from testbed.mechanisms.initial_window.proof import check_first_flights
from testbed.mechanisms.initial_window.quic import check_quic_windows
from testbed.mechanisms.ip.proof import check_ip
from testbed.mechanisms.names.proof import check_answers, check_lookups, check_questions
from testbed.mechanisms.neighbours.proof import check_neighbours
from testbed.mechanisms.offload.proof import check_sizes
from testbed.mechanisms.path_mtu.proof import check_path_mtu
from testbed.mechanisms.preconnect.proof import check_preconnect
from testbed.mechanisms.queue.proof import check_queueing
from testbed.mechanisms.quic.proof import check_quic
from testbed.mechanisms.reuse.proof import check_replay, check_requests, check_reuse
from testbed.mechanisms.sending.packing import check_data, check_records, check_segments
from testbed.mechanisms.sending.proof import check_sending
from testbed.mechanisms.sending.timers import check_timers
from testbed.mechanisms.think.proof import check_pace, check_thought
from testbed.mechanisms.tls.proof import (
    check_handshakes,
    check_protocol,
    check_sessions,
    check_version,
)
from testbed.mechanisms.visits.proof import check_cache, check_pinned, check_visits
from testbed.mechanisms.web_server.proof import check_program, check_stack
from testbed.mechanisms.web_server.settings import check_settings
from testbed.proof.answers import check_own_answers
from testbed.proof.both_ends import check_bytes
from testbed.proof.browser import check_load_event, check_log, check_paints, check_phases
from testbed.proof.captures import check_both_ways, check_counted, check_strangers, check_whole
from testbed.proof.client_time import check_client_time
from testbed.proof.conduct import (
    check_connections,
    check_graph,
    check_logged,
    check_requests_sent,
    check_scanner,
)
from testbed.proof.draws import check_computing, check_start
from testbed.proof.line import check_line
from testbed.proof.load_time import check_counts, check_load_time
from testbed.proof.openings import check_mss, check_openings, check_windows

CHECKS = (
    # The captures have all that crossed the link.
    check_whole,
    check_both_ways,
    check_counted,
    check_strangers,
    check_bytes,
    # The link was the one asked for.
    check_sizes,
    check_mss,
    check_openings,
    check_windows,
    check_ip,
    check_line,
    check_queueing,
    check_path_mtu,
    check_damage,
    check_ecn,
    check_neighbours,
    # The mechanisms under test happened.
    check_connected,
    check_arm,
    check_counters,
    check_first_flights,
    check_quic,
    check_quic_windows,
    check_requests,
    check_replay,
    check_reuse,
    check_preconnect,
    check_version,
    check_sessions,
    check_handshakes,
    check_protocol,
    check_program,
    check_stack,
    check_settings,
    check_lookups,
    check_questions,
    check_answers,
    check_thought,
    check_pace,
    check_sending,
    check_timers,
    check_segments,
    check_records,
    check_data,
    # The load is the one that its client tells of.
    check_start,
    check_computing,
    check_visits,
    check_cache,
    check_pinned,
    check_device,
    check_blocked,
    check_load_time,
    check_counts,
    check_own_answers,
    check_log,
    check_load_event,
    check_phases,
    check_paints,
    # And the client kept to its rules.
    check_logged,
    check_graph,
    check_requests_sent,
    check_connections,
    check_scanner,
    check_client_time,
)
