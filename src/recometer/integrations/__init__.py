"""recometer within other tools: experiment trackers, training loops and searches.

Each module is named after the library that it works with, which no other module imports.
"""
