"""Page loads: load times and what a visitor sees, alone or as pairs without and with Fast Open."""
