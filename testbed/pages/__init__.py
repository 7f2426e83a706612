"""Pages: catalogue, import, recording, recipes, resource tables, and the archives built of them."""
