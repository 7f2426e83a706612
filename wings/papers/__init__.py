"""Papers: publications beside ours and rebuilt, trends, a site, notebooks and teaching labs."""

from pathlib import Path

REFERENCES = Path(__file__).parent / "published" / "reference"
"""Of each publication a CSV, a TOML file, or both."""
NEEDS = ("scenarios", "server_loads")
PROVIDES = {"verbs": {"history": "wings.papers.verbs:history", "site": "wings.papers.verbs:site"},
            "references": {"papers": "wings.papers:REFERENCES"},
            "publications": {"papers": "wings.papers.publications"},
            "lanes": {"papers": "wings.papers.reproductions.lanes:write_lanes_page"},
            "documents": {"papers": "wings.papers.documents"}}  # fmt: skip
