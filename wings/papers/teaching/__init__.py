"""Teaching labs: notebooks of 45 minutes, what they measure, and checks of answers."""
