"""The parts of `compare`: models, pairs of models, standings, gates and tables."""
