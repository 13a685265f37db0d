"""Reads lists that a model wrote as text, and looks up their titles in a catalogue."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int64
from recometer.data import files, frames, ids
from recometer.data.catalogue import Catalogue
from recometer.data.cells import integers
from recometer.data.columns import KINDS, choose_columns, refuse_columns
from recometer.errors import InputError, InputTypeError, brief, warn
from recometer.sources._list_table import ListTable

if TYPE_CHECKING:
    import polars as pl

THOUGHT = r"(?s)^\s*<think>.*</think>"
FENCED = r"(?s)```\w*\s*\n(.*?)```"  # a fenced code block
BEGIN = r"(?:\[\s*[\[{\"\]]|\{\s*[\"}])"  # the first characters of JSON
JSON = f"^{BEGIN}"
# JSON that follows a colon or other lines of text, perhaps with more text after it.
WITHIN = rf"(?s)^(?:[^\n]*?:\s*|.*?\n\s*)({BEGIN}.*[\]}}])[^\[\]{{}}]*$"
# A JSON list that contains only strings, which Polars parses quickly.
STRING = r'"([^"\\\x00-\x1f]|\\["\\/])*"'
PLAIN = rf"^\[\s*{STRING}(\s*,\s*{STRING})*\s*\]$"
NUMBER, BULLET = r"^\(?\d{1,3}[.)]\s+", "^[-*+•‣\u2013]\\s+"
FIRST = r"^\(?1[.)]\s"
RULE = r"^([-*_=]{3,}|```.*)$"
SEVERAL = r"[,;]\s.*[,;]\s"  # possibly several titles in one line
APOSTROPHES = "['`\u2018\u2019\u02bc]"


KINDS_OF_PLACES = np.array(["", "unknown", "shared", "repeated"], object)


def read_answers(
    answers: Any, catalogue: object, *, user: object, answer: object
) -> tuple[ListTable, pl.DataFrame, Mapping[str, Any]]:
    """Return the lists, their invalid places, and the column names; see `Lists.from_text`."""
    import polars as pl

    user_ids, texts, columns = _columns(answers, user, answer)
    item_ids, titles = _titles_of(catalogue)
    owner, entries, unread = _entries(texts)
    codes, distinct = ids.encode(entries, "titles")
    keys = normalised(distinct.tolist())
    positions, shared = _positions_of(keys, titles)
    unknown = positions < 0
    _check_lines(owner, entries, unknown[codes], len(texts))
    _warn_of_titles(unknown, shared, distinct, titles)

    listed_ids = item_ids[positions]
    listed_ids[unknown] = _ids_of_titles(keys.filter(pl.Series(unknown)).to_list(), item_ids)
    all_ids = np.concatenate([item_ids, listed_ids])
    places, all_ids = ids.encode(all_ids, "item ids of the answers", np.int32)
    items = places[len(item_ids) :][codes]
    indptr = ragged.indptr_of(np.bincount(owner, minlength=len(texts)))
    table = ListTable(indptr, items, len(all_ids), None, user_ids, all_ids, generated=True)
    first = pl.Series(ragged.pairs(owner, items, len(all_ids))).is_first_distinct().to_numpy()
    kinds = np.select([~first, shared[codes], unknown[codes]], [3, 2, 1])

    invalid_rows, users = np.flatnonzero(kinds), pl.Series(ids.as_column(user_ids))
    places_of = {
        "user": users[owner[invalid_rows]],
        "place": invalid_rows - indptr[owner[invalid_rows]] + 1,
        "kind": pl.Series(KINDS_OF_PLACES[kinds[invalid_rows]], dtype=pl.String),
        "text": entries[invalid_rows],
    }
    invalid = [pl.DataFrame(places_of)]
    for kind, rows in unread.items():
        frame = pl.DataFrame({"user": users[rows], "text": texts[rows]})
        invalid.append(frame.with_columns(pl.lit(kind).alias("kind")))
    return table, pl.concat(invalid, how="diagonal"), columns


def normalised(texts: Iterable[str]) -> pl.Series:
    """Normalise titles, so that case, blanks, punctuation and the Unicode form make no difference.

    Apostrophes are removed, and other punctuation becomes a blank. Titles that consist only of
    punctuation keep it.
    """
    import polars as pl

    folded = pl.Series(
        [unicodedata.normalize("NFKC", text).casefold() for text in texts], dtype=pl.String
    )
    blank = folded.str.replace_all(APOSTROPHES, "").str.replace_all(r"[\p{P}\s]+", " ")
    plain = blank.str.strip_chars()
    return plain.zip_with(plain != "", folded.str.strip_chars())


def _titles_of(catalogue: object) -> tuple[Array, list[str]]:
    """Return the ids and titles of the items; an empty string means that there is no title."""
    if not isinstance(catalogue, Catalogue):
        catalogue = Catalogue(catalogue)
    titles = [] if catalogue.titles is None else catalogue.titles.tolist()
    titles = ["" if title is None or title != title else str(title) for title in titles]
    if not any(titles):
        raise InputError(
            "The catalogue has no titles, which are needed to find its items in the answers. Hint: "
            "rm.Catalogue(frame, title='the column of titles'); if the answers are lists of item "
            "ids, rm.Lists({user: [items]}) reads them."
        )
    if catalogue.item_ids is None:
        raise InputError(
            "The items of the catalogue are positions, but items that a model invents have none. "
            "Hint: rm.Catalogue(frame, item='the column of ids')."
        )
    return catalogue.item_ids, titles


def _columns(
    answers: Any, user: object, answer: object
) -> tuple[Array, pl.Series, Mapping[str, Any]]:
    """Return the user ids, the answers, and the names of the columns that contain them."""
    import polars as pl

    users: Any
    texts: Any
    columns: Mapping[str, Any] = {}
    if isinstance(answers, Mapping):
        refuse_columns(answers)
        if user is not None or answer is not None:
            raise InputError("user= and answer= name columns. Hint: leave them out for a dict.")
        users, texts = list(answers), list(answers.values())
    elif isinstance(answers, str | os.PathLike) or frames.is_frame(answers):
        in_file = isinstance(answers, str | os.PathLike)
        table = files.read_columns(answers) if in_file else frames.rereadable(answers)
        names, fetch = frames.open_frame(table)
        required = ("user", "answer")
        columns = choose_columns(names, {"user": user, "answer": answer}, required=required)
        users, texts = fetch([str(columns[name]) for name in required])
        if in_file and str(answers).lower().endswith(tuple(files.SEPARATORS)):
            users = integers(users)
    else:
        raise InputTypeError(
            f"Answers cannot be read from {type(answers).__name__}. Hint: pass a dict "
            "{user: text}, a data frame with a column of users and one of answers, or the path of "
            "a Parquet, CSV or TSV file."
        )
    user_ids = ids.as_ids(users, "user ids of the answers")
    if len(user_ids) == 0:
        raise InputError("There are no answers. Hint: check what the model returned.")
    codes, distinct = ids.encode(user_ids, "user ids of the answers")
    if len(distinct) < len(user_ids):
        twice = ids.show(distinct, int(np.bincount(codes).argmax()))
        raise InputError(f"The user {twice} has several answers. Hint: pass one row per user.")
    if isinstance(texts, pl.Series) and texts.dtype == pl.String:
        return user_ids, texts.fill_null(""), columns
    rows = texts.to_list() if hasattr(texts, "to_list") else list(texts)
    read = [_text(row, user_ids, place) for place, row in enumerate(rows)]
    return user_ids, pl.Series(read, dtype=pl.String), columns


def _text(row: Any, user_ids: Array, place: int) -> str:
    if isinstance(row, str):
        return _unicode(row)
    if row is None or (isinstance(row, float) and row != row):
        return ""
    if isinstance(row, list | tuple | np.ndarray):
        return json.dumps(list(map(str, row)))
    raise InputTypeError(
        f"The answer for user {ids.show(user_ids, place)} is of type {type(row).__name__}. Hint: "
        "pass a text or a list of titles."
    )


def _entries(texts: pl.Series) -> tuple[Int64, pl.Series, dict[str, Int64]]:
    """Return the entries of all answers, and the answers without entries.

    The first result is the position of the answer from which each entry comes, and the second one
    is the entries themselves. Answers without entries are grouped by kind: ``"unreadable"`` or
    ``"empty"``.
    """
    import polars as pl

    texts = texts.str.replace(THOUGHT, "")
    texts = _replace(texts, FENCED, texts.str.contains("```", literal=True)).str.strip_chars()
    has_list = texts.str.contains(JSON) | texts.str.contains(f"(?m){FIRST}")
    texts = _replace(texts, WITHIN, texts.str.contains(BEGIN) & ~has_list)
    table = pl.DataFrame({"answer": np.arange(len(texts)), "text": texts})
    is_json = texts.str.contains(JSON)
    is_plain = is_json & texts.str.contains(PLAIN)
    plain, other_json = table.filter(is_plain), table.filter(is_json & ~is_plain)
    plain = plain.with_columns(pl.col("text").str.json_decode(pl.List(pl.String)))
    titles = pl.Series("text", map(_titles_in, other_json["text"]), pl.List(pl.String))
    unreadable = other_json["answer"].filter(titles.is_null()).to_numpy()
    from_json = pl.concat([plain, other_json.with_columns(titles)]).explode("text").drop_nulls()
    lines = table.filter(~is_json).with_columns(pl.col("text").str.split("\n")).explode("text")
    lines = lines.with_columns(pl.col("text").str.strip_chars()).filter(pl.col("text") != "")
    numbered, lines = _split_marked(lines, NUMBER, FIRST)
    bulleted, lines = _split_marked(lines, BULLET, BULLET)
    lines = lines.filter(~pl.col("text").str.contains(RULE))
    begins = pl.col("answer") != pl.col("answer").shift(fill_value=-1)
    lines = lines.filter(~(begins & pl.col("text").str.ends_with(":")))  # an introduction
    entries = pl.concat([from_json, numbered, bulleted, lines])
    entries = entries.sort("answer", maintain_order=True)
    owner = entries["answer"].to_numpy()
    is_empty = np.bincount(owner, minlength=len(texts)) == 0
    is_empty[unreadable] = False
    unread = {"unreadable": unreadable, "empty": np.flatnonzero(is_empty)}
    return owner, entries["text"], unread


def _replace(texts: pl.Series, pattern: str, mask: pl.Series) -> pl.Series:
    """Replace each string marked in `mask` with what the pattern captures in it, if anything."""
    if not mask.any():
        return texts
    part = texts.str.extract(pattern)
    return part.zip_with(mask & part.is_not_null(), texts)


def _split_marked(lines: pl.DataFrame, mark: str, first: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the marked lines of answers with marked entries, and all lines of other answers.

    An answer has marked entries if one of its lines matches `first`, or if every line is marked.
    Any unmarked lines in it are introductions or remarks.
    """
    import polars as pl

    owner, text = lines["answer"].to_numpy(), lines["text"]
    bare = text.str.replace(mark, "")
    marked = (bare.str.len_bytes() < text.str.len_bytes()).to_numpy()
    n = int(owner.max(initial=-1)) + 1
    n_unmarked = np.bincount(owner[~marked], minlength=n)
    n_first = np.bincount(owner[text.str.contains(first).to_numpy()], minlength=n)
    lists = ((n_first > 0) | (n_unmarked == 0))[owner]
    entries = lines.with_columns(text=bare).filter(pl.Series(lists & marked))
    return entries, lines.filter(pl.Series(~lists))


def _titles_in(text: str) -> list[str] | None:
    """Return the titles in a JSON answer; None if no list of titles can be read from it."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(entries, dict):
        values = list(entries.values())
        nested = [value for value in values if isinstance(value, list)]
        entries = nested[0] if len(nested) == 1 else values
    titles = [_title(entry) for entry in entries]
    return None if None in titles else titles  # type: ignore[return-value]


def _title(entry: object) -> str | None:
    if isinstance(entry, dict):
        names = [name for name in entry if name.lower() in KINDS["title"].names]
        entry = entry[names[0]] if len(names) == 1 else []
    return None if isinstance(entry, list | dict) else _unicode(str(entry))


def _unicode(text: str) -> str:
    """Replace lone surrogates, which a model may write but Polars refuses."""
    return text.encode("utf-8", "replace").decode()


def _positions_of(keys: pl.Series, titles: Sequence[str]) -> tuple[Int64, Bool]:
    """Return each title's item position (or -1), and whether several items share the title."""
    import polars as pl

    by_key = pl.DataFrame({"key": normalised(titles), "item": np.arange(len(titles))})
    by_key = by_key.filter(pl.col("key") != "")
    by_key = by_key.group_by("key").agg(pl.col("item").first(), pl.len().alias("n"))
    joined = pl.DataFrame({"key": keys}).join(by_key, "key", how="left", maintain_order="left")
    shared = (joined["n"] > 1).fill_null(value=False).to_numpy()
    positions: Int64 = np.where(shared, -1, joined["item"].fill_null(-1).to_numpy())
    return positions, shared


def _check_lines(owner: Int64, entries: pl.Series, unknown: Bool, n: int) -> None:
    """Raise an error if most answers seem to be a single line with several titles."""
    import polars as pl

    lines = entries.filter(pl.Series((np.bincount(owner, minlength=n)[owner] == 1) & unknown))
    several = lines.filter(lines.str.contains(SEVERAL))
    if 2 * len(several) > n:
        raise InputError(
            f"{len(several):,} of {n:,} answers seem to have several titles on one line, such as "
            f"{brief(several[0])}. Titles may contain commas, so such lines are not split. Hint: "
            "ask the model for a JSON list, or for one title per line."
        )


def _warn_of_titles(unknown: Bool, shared: Bool, distinct: Array, titles: Sequence[str]) -> None:
    if len(unknown) and unknown.all():
        warn(
            f"None of the titles in the answers, such as {brief(distinct[0])}, is in the catalogue"
            ": every listed item is unknown. Hint: titles, including any year, must be equal "
            "except for case, blanks and punctuation. Titles in the catalogue look like "
            f"{brief(next(filter(None, titles)))}."
        )
    if shared.any():
        warn(
            f"{np.count_nonzero(shared):,} titles in the answers, such as "
            f"{brief(distinct[int(shared.argmax())])}, belong to several items of the catalogue: "
            "none of these items is chosen. Hint: make the titles distinct, for instance by adding "
            "the year."
        )


def _ids_of_titles(titles: list[str], item_ids: Array) -> Array:
    """Return ids that are not in the catalogue; a title gets the same id in every call."""
    if ids.kind(item_ids) == "str":
        prefix = "?"
        while any(item.startswith(prefix) for item in item_ids.tolist()):
            prefix += "?"
        return np.array([f"{prefix} {title}" for title in titles], object)
    lowest = min(0, int(item_ids[0])) if item_ids.dtype == np.int64 else -(2**62)
    if lowest <= -(2**62):
        raise InputError(
            "The item ids of the catalogue must be strings, or whole numbers between -2^62 and "
            f"2^63, found {ids.kind(item_ids)} ids such as {ids.show(item_ids, 0)}."
        )
    digests = ids.user_keys(np.array(titles, object), len(titles)) >> np.uint64(2)
    return lowest - 1 - digests.astype(np.int64)
