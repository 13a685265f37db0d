"""recometer in other tools: experiment trackers, training loops and hyperparameter searches.

Each module has the name of its library, which no other module imports.
"""
