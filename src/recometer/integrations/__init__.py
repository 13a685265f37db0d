"""recometer within other tools: trackers of experiments, training loops and searches.

Each module is named after the library that it joins, which it alone imports.
"""
