"""Segmentation offloads of network devices (ethtool(8))."""
