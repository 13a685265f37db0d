"""What the verb `compare` is made of: models, pairs of them, standings, gates, tables."""
