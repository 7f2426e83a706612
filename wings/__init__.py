"""Wings: packages beside the engine, each with its tests and its page of documentation."""
