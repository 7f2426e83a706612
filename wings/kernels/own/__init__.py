"""Kernels of the user's own: patches, git trees and configurations on top of a pinned kernel."""
