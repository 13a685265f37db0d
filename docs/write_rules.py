"""Write docs/rules.md from the declarations of the rules: python docs/write_rules.py."""

import dataclasses
from pathlib import Path

from recometer.protocol import Number, Protocol, Rule

HEAD = """# Rules

The value of a metric depends on rules, which are the fields of `rm.Protocol`. To change one, pass
it to `rm.evaluate`, as in `rm.evaluate(..., ties="item")`, or use `--rule ties=item` on the command
line. A convention is a named set of rules. Every result contains its rules in `result.protocol`.
`rm.explain` changes the rules step by step; the last column shows the step to which each rule
belongs.

| rule | values | step of `explain` |
|---|---|---|
"""


def page() -> str:
    """Return the text of docs/rules.md."""
    rows = [row(field, field.metadata["rule"]) for field in dataclasses.fields(Protocol)]
    return HEAD + "".join(rows)


def row(field: dataclasses.Field, rule: Rule) -> str:
    """Return the row of a rule: its values with their meanings, the default in bold."""
    values = []
    for value, sentence in rule.says.items():
        choice = f"x, {value.text}" if isinstance(value, Number) else f"`{value!r}`"
        default = not isinstance(value, Number) and repr(value) == repr(field.default)
        values.append(f"{f'**{choice}**' if default else choice}: {sentence.format('x')}")
    if repr(field.default) not in map(repr, rule.says):
        values.append(f"The default is `{field.default!r}`.")
    text = "<br>".join([*values, *([rule.about] if rule.about else [])])
    return f"| `{field.name}` | {text} | {rule.step or rule.no_step} |\n"


if __name__ == "__main__":
    (Path(__file__).parent / "rules.md").write_text(page(), encoding="utf-8")
