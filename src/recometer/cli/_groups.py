"""Groups of options: commands take dataclasses with options as fields."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NewType

Files = NewType("Files", tuple[str, ...])
"""The type of a parameter that gets the paths of all files that the command's options name."""


@dataclasses.dataclass(frozen=True)
class Reads:
    """A mark for an option that names input files, which no output may replace."""

    # A function from the option's value to the paths of these files.
    paths: Callable[[str], Iterable[str]] = lambda text: [text]

    def files(self, value: str | list[str] | None) -> list[str]:
        """Return the files that the value of an option names, including the files in a folder.

        A folder that cannot be listed is reported when it is read.
        """
        texts = [value] if isinstance(value, str) else value or []
        found = []
        for path in (path for text in texts for path in self.paths(text) if path):
            found.append(path)
            with contextlib.suppress(OSError, ValueError):
                found += [os.path.join(path, name) for name in sorted(os.listdir(path))]
        return found


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that it can take groups of options, and `Files`.

    Typer sees every option of a group as a separate parameter. The function is called with the
    groups, filled with the values. A parameter of type `Files` gets the files that the options
    name.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {}
    takes_files: list[str] = []
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        kind = parameter.annotation
        if dataclasses.is_dataclass(kind):
            groups[name] = kind
            parameters += _options_of(groups[name])
        elif kind is Files:
            takes_files.append(name)
        else:
            parameters.append(parameter.replace(kind=KEYWORD))

    @functools.wraps(function)
    def wrapper(**given: Any) -> None:
        files = Files(tuple(files_read(parameters, given)))
        for name, group in groups.items():
            own = [field.name for field in dataclasses.fields(group)]
            given[name] = group(**{field: given.pop(field) for field in own})
        function(**given, **dict.fromkeys(takes_files, files))

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapper


KEYWORD = inspect.Parameter.KEYWORD_ONLY


def reads(parameter: inspect.Parameter) -> Reads | None:
    """Return the mark of an option that names input files, or None."""
    marks = typing.get_args(parameter.annotation)
    return next((mark for mark in marks if isinstance(mark, Reads)), None)


def files_read(parameters: Iterable[inspect.Parameter], given: Mapping[str, Any]) -> list[str]:
    """Return the input files that options name."""
    return [
        path
        for parameter in parameters
        if (mark := reads(parameter)) is not None
        for path in mark.files(given[parameter.name])
    ]


@functools.cache  # commands that take the same group have the same options
def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            KEYWORD,
            annotation=hints[field.name],
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
        )
        for field in dataclasses.fields(group)
    ]
