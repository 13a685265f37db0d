"""Integrations with experiment trackers, training loops and hyperparameter searches.

Most modules are named after a library, which no other module imports.
"""
