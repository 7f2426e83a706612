"""Forms of results for those who judge kernels: the CI of netdev, and the database KCIDB."""
