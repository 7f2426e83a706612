"""Packet captures: written by tcpdump and a recorder of ours, and read back without a judgement."""
