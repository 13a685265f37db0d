"""What the verb `evaluate` is made of: its arguments, what it asks of a source, its checks."""
