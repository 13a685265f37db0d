"""recometer in other tools: experiment trackers, training loops and hyperparameter searches.

Each module is named after its library, and no other module imports this library.
"""
