"""Write docs/rules.md from the declarations of the rules: python docs/write_rules.py."""

import dataclasses
from pathlib import Path

from recometer.protocol import Number, Protocol, Rule

HEAD = """# Rules

The rules that a number depends on are those of `rm.Protocol`: `rm.evaluate(..., ties="item")`
replaces one, `--rule ties=item` does on the command line. A convention is a set of them with a
name. Every result carries its own in `result.protocol`, and `rm.explain` changes one step's rules
after the other.

| rule | values | step of `explain` |
|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = [row(field, field.metadata["rule"]) for field in dataclasses.fields(Protocol)]
    return HEAD + "".join(rows)


def row(field: dataclasses.Field, rule: Rule) -> str:
    """Return a rule's row: its values, the default in bold, and what each says."""
    values = []
    for value, said in rule.says.items():
        written = f"x, {value.text}" if isinstance(value, Number) else f"`{value!r}`"
        default = not isinstance(value, Number) and repr(value) == repr(field.default)
        values.append(f"{f'**{written}**' if default else written}: {said.format('x')}")
    if repr(field.default) not in map(repr, rule.says):
        values.append(f"Default: `{field.default!r}`.")
    text = "<br>".join([*values, *([rule.about] if rule.about else [])])
    return f"| `{field.name}` | {text} | {rule.step or rule.no_step} |\n"


if __name__ == "__main__":
    (Path(__file__).parent / "rules.md").write_text(page(), encoding="utf-8")
