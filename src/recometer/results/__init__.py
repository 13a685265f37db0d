"""Results: evaluations, their means and intervals, groups, folds and summaries."""
