"""Pages that are made from installable packages: fetched, split over hosts, recorded."""
