"""Pages: imported, recorded, made of packages and of resource tables; verified and exported."""

PLACE = ("pages",)
"""The folder of pages by name."""
PROVIDES = {
    "argument_places": {
        "pages build": "wings.pages:PLACE",
        "pages export": "wings.pages:PLACE",
        "pages show": "wings.pages:PLACE",
        "pages verify": "wings.pages:PLACE",
    },
    "machine_checks": {"recording": "wings.pages.recorder.driver:check_machine"},
    "page_builders": {
        "recipe": "wings.pages.recipe.build:build_recipe",
        "table": "wings.pages.synthesis.build:build_table",
    },
    "verbs": {"pages": "wings.pages.verbs.pages:pages"},
}
