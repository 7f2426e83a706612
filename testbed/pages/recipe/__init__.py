"""Pages that are made from installable packages: fetched, split over hosts, recorded."""

from testbed.pages.recipe.build import build_recipe

__all__ = ["build_recipe"]
