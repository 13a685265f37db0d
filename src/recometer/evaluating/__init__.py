"""The steps of `evaluate`: read the arguments, request records and compute the metrics."""
