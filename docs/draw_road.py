"""Draw docs/road.svg, the picture of the architecture: python docs/draw_road.py."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 200, 84  # the size of a box
ACROSS, DOWN = 236, 122  # the distance from one box to the next
MARGIN = 16
FILL = {"outside": "#f1f3f5", "step": "#ffffff", "record": "#dbeafe"}

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2933; text-anchor: middle }
.title { font-weight: 600; font-size: 15px }
.paths { font-family: ui-monospace, monospace; font-size: 12px; fill: #52606d }
path { fill: none; stroke: #52606d; stroke-width: 1.6; marker-end: url(#head) }
.use { stroke-dasharray: 3 4 }
"""


HEAD = """\
<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7"
orient="auto"><polygon points="0,0 8,4 0,8" fill="#52606d"/>
</marker>"""


class Box(NamedTuple):
    """A box of the picture."""

    column: int
    row: int
    kind: str  # the kind of box: an input or output, a step, or a record
    title: str
    paths: tuple[str, ...]  # the files and folders of the package
    text: str


class Arrow(NamedTuple):
    """An arrow from a box to a neighbour: the data flow, or a helper module that a step uses."""

    begin: str
    end: str
    data: bool = True


BOXES = {
    "interactions": Box(0, 0, "outside", "Interactions", (), "matrices, frames, files, dicts"),
    "data": Box(1, 0, "step", "Read, match ids", ("data",), "returns Interactions"),
    "evaluate": Box(
        2, 0, "step", "evaluate()", ("evaluation.py", "evaluating"), "asks a source for Ranks"
    ),
    "protocol": Box(3, 0, "record", "Protocol", ("protocol",), "rules of ties, NaN, users ..."),
    "output": Box(0, 1, "outside", "Output of a model", (), "factors, scores, lists, pairs"),
    "sources": Box(1, 1, "step", "Rank", ("sources",), "the only step that sees scores"),
    "ranks": Box(2, 1, "record", "Ranks", ("ranks.py",), "the ranks of the test items"),
    "metrics": Box(3, 1, "step", "Measure", ("measuring", "metrics"), "reasons, then formulas"),
    "kernel": Box(1, 2, "step", "Count", ("_kernel",), "native code"),
    "compare": Box(
        2, 2, "step", "compare()", ("comparison.py", "comparing"), "pairs of models, gates"
    ),
    "evaluation": Box(3, 2, "record", "Evaluation", ("results",), "a value for each user"),
    "page": Box(0, 3, "outside", "Output", (), "a page, tables, a verdict"),
    "report": Box(1, 3, "step", "Report", ("report", "rendering"), "first as a data model"),
    "comparison": Box(2, 3, "record", "Comparison", ("comparing",), "differences and p-values"),
    "stats": Box(3, 3, "step", "Statistics", ("stats",), "arrays in, numbers out"),
}
ARROWS = (
    Arrow("interactions", "data"),
    Arrow("output", "sources"),
    Arrow("data", "sources"),
    Arrow("sources", "ranks"),
    Arrow("ranks", "metrics"),
    Arrow("metrics", "evaluation"),
    Arrow("evaluation", "compare"),
    Arrow("compare", "comparison"),
    Arrow("comparison", "report"),
    Arrow("report", "page"),
    Arrow("evaluate", "ranks", data=False),
    Arrow("protocol", "metrics", data=False),
    Arrow("kernel", "sources", data=False),
    Arrow("stats", "evaluation", data=False),
    Arrow("stats", "comparison", data=False),
)


def picture() -> str:
    """Return the picture as SVG."""
    width = 2 * MARGIN + max(box.column for box in BOXES.values()) * ACROSS + WIDTH
    height = 2 * MARGIN + max(box.row for box in BOXES.values()) * DOWN + HEIGHT
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>The road from interactions and the output of a model to a report</title>",
        f"<style>{STYLE}</style>",
        HEAD,
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        *map(drawn_arrow, ARROWS),
        *map(drawn_box, BOXES.values()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def drawn_box(box: Box) -> str:
    """Return a box with its lines of text."""
    left, top = corner(box)
    paths = ", ".join(path if path.endswith(".py") else f"{path}/" for path in box.paths)
    lines = [("title", box.title), *([("paths", paths)] if paths else []), ("", box.text)]
    first = top + HEIGHT / 2 - 11 * (len(lines) - 1) + 5
    texts = [
        f'<text class="{name}" x="{left + WIDTH / 2:g}" y="{first + 22 * place:g}">'
        f"{escape(text)}</text>"
        for place, (name, text) in enumerate(lines)
    ]
    shape = (
        f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="8" '
        f'fill="{FILL[box.kind]}" stroke="#9aa5b1"/>'
    )
    return "\n".join([shape, *texts])


def drawn_arrow(arrow: Arrow) -> str:
    """Return an arrow between the sides of two boxes that face each other."""
    begin, end = BOXES[arrow.begin], BOXES[arrow.end]
    across, down = end.column - begin.column, end.row - begin.row
    (x, y), (to_x, to_y) = middle(begin), middle(end)
    ways = (x + across * WIDTH / 2, y + down * HEIGHT / 2)
    to = (to_x - across * (WIDTH / 2 + 2), to_y - down * (HEIGHT / 2 + 2))
    kind = "" if arrow.data else ' class="use"'
    return f'<path{kind} d="M{ways[0]:g},{ways[1]:g} L{to[0]:g},{to[1]:g}"/>'


def corner(box: Box) -> tuple[int, int]:
    """Return the upper left corner of a box."""
    return MARGIN + box.column * ACROSS, MARGIN + box.row * DOWN


def middle(box: Box) -> tuple[float, float]:
    """Return the middle of a box."""
    left, top = corner(box)
    return left + WIDTH / 2, top + HEIGHT / 2


if __name__ == "__main__":
    Path(__file__).with_name("road.svg").write_text(picture(), encoding="utf-8")
