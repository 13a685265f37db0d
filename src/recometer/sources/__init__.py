"""Sources: each kind of model output has modules that turn it into `Ranks`."""
