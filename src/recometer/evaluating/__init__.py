"""The steps of `evaluate`: read arguments, request records from a source, measure and check."""
