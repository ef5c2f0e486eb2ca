"""Where templates of strangers run: Jinja's sandbox, with an end to loops and to growth.

The sandbox keeps a template from the program; what it lets through is work without an end, for
a template is a program with loops, recursion and ``'x' * 10 ** 9``. So every turn of a loop and
every call asks whether it is still wanted, and whatever makes long text is bounded. Any thread;
each renders under its own :func:`watched`.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeGuard

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
import jinja2.visitor

from moelauncher.core.errors import Cancelled
from moelauncher.core.translate import tr

#: No prompt is longer, in characters.
LONGEST_TEXT = 64_000_000
#: No column of a table is wider, no indent deeper.
_WIDEST = 100_000
_MOST_BITS = 1 << 16
_ASK_EVERY = 64

#: A width in a format, written out or taken from another value.
_WIDE_FORMAT = re.compile(r"\d{6}|\*|\{[^{}]*\{")
#: Methods and filters whose numbers are widths.
_WIDENING = frozenset(
    {
        *("center", "expandtabs", "indent", "ljust", "rjust", "truncate", "wordwrap", "zfill"),
        *("batch", "round", "slice", "tojson"),
    }
)
_here = threading.local()


@contextmanager
def watched(cancelled: Callable[[], bool]) -> Iterator[None]:
    """While the body renders on this thread, loops and calls ask ``cancelled``."""
    before = getattr(_here, "cancelled", None)
    _here.cancelled, _here.n_steps = cancelled, 0
    try:
        yield
    finally:
        _here.cancelled = before


def step() -> None:
    """One turn of a loop, or one call. Raises Cancelled."""
    _here.n_steps = getattr(_here, "n_steps", 0) + 1
    if _here.n_steps % _ASK_EVERY == 0:
        cancelled = getattr(_here, "cancelled", None)
        if cancelled is not None and cancelled():
            raise Cancelled


def joined(parts: Iterable[str]) -> str:
    """``"".join``, bounded."""
    whole: list[str] = []
    length = 0
    for part in parts:
        length += len(part)
        _check_length(length)
        whole.append(part)
    return "".join(whole)


def chained(*values: object) -> str:
    """What ``~`` makes of its values."""
    return joined(str(value) for value in values)


def _check_length(length: int) -> None:
    if length > LONGEST_TEXT:
        raise jinja2.TemplateError(tr("its output has no end"))


class _Watch(jinja2.visitor.NodeTransformer):
    """Puts a step into every loop, and bounds ``~``."""

    def visit_For(self, node: jinja2.nodes.For) -> jinja2.nodes.Node:  # noqa: N802 - Jinja's name
        self.generic_visit(node)
        # By import, so that no variable of the template can stand in its place.
        call = _imported("step", [])
        node.body.insert(0, jinja2.nodes.ExprStmt(call, lineno=node.lineno))
        return node

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _imported("chained", node.nodes)


def _imported(name: str, values: list[jinja2.nodes.Expr]) -> jinja2.nodes.Call:
    function = jinja2.nodes.ImportedName(f"{__name__}.{name}")
    return jinja2.nodes.Call(function, values, [], None, None)


class _GenerationTag(jinja2.ext.Extension):
    """Training templates mark replies with ``{% generation %}``: only the inside counts."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own form

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class GuardedEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Jinja as the makers of chat templates expect it, bounded."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(joined)

    def __init__(self, filters: Mapping[str, Callable[..., Any]]) -> None:
        """``filters`` are used instead of Jinja's own of those names."""
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_GenerationTag, jinja2.ext.loopcontrols],
        )
        del self.globals["lipsum"]
        known = {**self.filters, **filters}
        self.filters = {name: _bounded(name, one) for name, one in known.items()}

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja2.nodes.Template:
        tree = super()._parse(source, name, filename)
        watched_tree = _Watch().visit(tree)
        assert isinstance(watched_tree, jinja2.nodes.Template)
        return watched_tree.set_environment(self)  # type: ignore[return-value]

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """An operator that may make something large."""
        if operator == "*":
            _check_product(left, right)
            _check_product(right, left)
        elif operator == "**":
            _check_bits(left.bit_length() * abs(right) if _whole(left) and _whole(right) else 0)
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
        elif operator == "+" and isinstance(left, str | list) and isinstance(right, str | list):
            _check_length(len(left) + len(right))
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """``str.format``, bounded."""
        wrapped = super().wrap_str_format(value)
        return None if wrapped is None else _bounded("format", wrapped, value.__self__)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """A call in a template; the odd names are Jinja's, so that any keyword is free."""
        step()
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            _check_call(owner, getattr(__obj, "__name__", ""), args, kwargs)
        return super().call(__context, __obj, *args, **kwargs)


def _bounded(name: str, does: Callable[..., Any], text: str | None = None) -> Callable[..., Any]:
    @functools.wraps(does)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        on = text
        if on is None:  # a filter: what it works on is an argument
            on = next((value for value in args if isinstance(value, str)), "")
        _check_call(on, name, args, kwargs)
        return does(*args, **kwargs)

    return bounded


def _check_call(text: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What is asked of a text, as a method or a filter: nothing wider than any prompt."""
    values = (*args, *kwargs.values())
    if name in _WIDENING and any(_whole(value) and abs(value) > _WIDEST for value in values):
        raise jinja2.TemplateError(tr("its output has no end"))
    if name == "format":
        _check_format(text)
    elif name == "replace":
        new = max((len(value) for value in values if isinstance(value, str)), default=0)
        _check_length((text.count(_searched(text, args)) + 1) * new + len(text))
    elif name == "join":
        parts = next((value for value in values if isinstance(value, list | tuple)), ())
        _check_length(len(parts) * len(text))


def _searched(text: str, args: tuple[Any, ...]) -> str:
    texts = [value for value in args if isinstance(value, str)]
    if len(texts) > 2:  # a filter: the text itself comes first
        del texts[0]
    return texts[0] if texts else text


def _check_product(many: object, times: object) -> None:
    if isinstance(many, str | list | tuple | bytes) and _whole(times):
        _check_length(len(many) * max(0, times))
    elif _whole(many) and _whole(times):
        _check_bits(many.bit_length() + times.bit_length())


def _check_bits(n_bits: int) -> None:
    if n_bits > _MOST_BITS:
        raise jinja2.TemplateError(tr("it computes with numbers that are too large"))


def _check_format(text: str) -> None:
    if _WIDE_FORMAT.search(text):
        raise jinja2.TemplateError(tr("its output has no end"))


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
