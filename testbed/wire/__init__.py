"""What happened on the wire: captures and the proof that the mechanism under test happened."""
