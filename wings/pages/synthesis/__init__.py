"""Bodies made from a resource table: every size exact, every object named by its carrier."""
