"""Sources: the modules that turn each kind of model output into `Ranks`."""
