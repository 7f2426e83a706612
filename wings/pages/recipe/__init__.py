"""Pages that are made from installable packages: fetched, split over hosts, recorded."""

from wings.pages.recipe.build import build_recipe

__all__ = ["build_recipe"]
