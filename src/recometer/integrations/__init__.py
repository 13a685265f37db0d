"""Integrations with experiment trackers, training loops and hyperparameter searches.

Most modules are named after a library, and no other module imports that library.
"""
