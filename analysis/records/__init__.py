"""Records of a results folder, as cells, frames and requests."""
