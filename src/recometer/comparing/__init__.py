"""The building blocks of `compare`: models, pairs of models, standings, gates and tables."""
