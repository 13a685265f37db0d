"""Modules that turn each kind of model output into `Ranks`."""
