"""Turns model output into `Ranks`, with a group of modules for each kind of output."""
