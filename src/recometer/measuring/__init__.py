"""From what was ranked to values: by which rules, and why a value is undefined."""
