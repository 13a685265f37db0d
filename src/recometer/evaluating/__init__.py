"""The steps of `evaluate`: read the arguments, request records, compute the metrics."""
