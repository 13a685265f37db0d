"""Option groups: dataclasses that commands take as parameters."""

from __future__ import annotations

import dataclasses
import functools
import glob
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NewType

from recometer.cli._models import FOLD

Files = NewType("Files", tuple[str, ...])
"""The type of a parameter that receives all potential input paths in the command's options."""

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that its parameters can be option groups or `Files`.

    Typer sees every option of a group as a separate parameter. The function receives
    the groups, populated with the options' values.
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
    def wrapper(**values: Any) -> None:
        files = Files(tuple(_paths_in(values)))
        for name, group in groups.items():
            names = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in names})
        function(**values, **dict.fromkeys(takes_files, files))

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {option.name: option.annotation for option in parameters}
    return wrapper


def _paths_in(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of option values that may be input files, such as FILE in ``NAME=FILE,FILE``.

    Output options are skipped, because their values are `Path` objects, not strings.
    """
    for name, value in values.items():
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or name == "separator":  # its "-" is not standard input
            continue
        for text in texts:
            first, *more = text.split(",")
            # The comma may also be part of a path.
            whole_texts = [text, text.partition("=")[2]] if more else []
            for path in filter(None, [first, first.partition("=")[2], *more, *whole_texts]):
                yield from glob.glob(path.replace(FOLD, "*")) if FOLD in path else [path]


@functools.cache  # several commands take the same group
def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    options = inspect.signature(group, eval_str=True).parameters.values()
    return [option.replace(kind=KEYWORD) for option in options]
