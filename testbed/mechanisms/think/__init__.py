"""Think time of the page's servers."""
