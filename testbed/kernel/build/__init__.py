"""Virtual kernels built: pinned sources, configurations and patches, and the cache of binaries."""
