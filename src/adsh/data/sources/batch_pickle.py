"""Read the batch files of CIFAR-10's Python version, which are pickles, without ever running one.

A pickle is a program for a small stack machine. Unpickling runs it, and it may call anything. Here the program is
only read: `pickletools.genops` lists its instructions, and the few that such files need (dicts, lists, tuples,
strings, numbers, and one array of bytes) are followed on a stack of plain values. A name of a function is a text,
never looked up; any other instruction or name is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

_MARK = object()
_ARRAY = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
_BYTES = ("__builtin__ bytes", "builtins bytes")
_NAMES = (*_ARRAY, *_BYTES, "numpy ndarray", "numpy dtype", "_codecs encode")


class _Name(str):
    """A function's or class's name as the file gives it; nothing behind it is ever touched."""


class _Array:
    values: NDArray[np.uint8] | None = None


def read_batch(file: bytes, name: str) -> dict[str, Any]:
    """Return the dict that a batch file holds; its arrays are of uint8. `name` is what errors call the file."""
    machine = _Machine(name)
    try:
        for opcode, argument, _ in pickletools.genops(file):
            machine.step(opcode.name, argument)
        (content,) = machine.stack
        pairs = {_text(key): value.values if isinstance(value, _Array) else value for key, value in content.items()}
    except InputError:
        raise
    except Exception as problem:  # an instruction that does not fit the stack, or bytes that are no instruction
        kind = type(problem).__name__
        raise InputError(f"{name} is no batch of CIFAR-10 ({kind} while reading it): download it again") from None
    return pairs


class _Machine:
    """The stack, the memo, and what each instruction does to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def step(self, code: str, argument: Any) -> None:
        """Follow one instruction."""
        follow = _INSTRUCTIONS.get(code)
        if follow is None:
            raise InputError(f"{self.name} has the instruction {code}, which a batch of CIFAR-10 never needs: refused")
        follow(self, argument)

    def push(self, value: Any) -> None:
        """BININT and its kind: the argument is the value."""
        self.stack.append(value)

    def put(self, number: int | None) -> None:
        """PUT and its kind: remember the top of the stack; MEMOIZE under the next number."""
        self.memo[len(self.memo) if number is None else number] = self.stack[-1]

    def get(self, number: int) -> None:
        """GET and its kind: push what was remembered."""
        self.stack.append(self.memo[number])

    def append(self, _: Any) -> None:
        """APPEND: add a value to the list below it."""
        value = self.stack.pop()
        self.stack[-1].append(value)

    def extend(self, _: Any) -> None:
        """APPENDS: add the values since the mark to the list below it."""
        values = self._since_mark()
        self.stack[-1].extend(values)

    def set_item(self, _: Any) -> None:
        """SETITEM: set a key of the dict below it."""
        key, value = self.stack.pop(-2), self.stack.pop()
        self.stack[-1][_key(key)] = value

    def set_items(self, _: Any) -> None:
        """SETITEMS: set the keys since the mark in the dict below it."""
        values = self._since_mark()
        self.stack[-1].update(zip(map(_key, values[::2]), values[1::2], strict=True))

    def make_tuple(self, _: Any, count: int | None = None) -> None:
        """TUPLE: of the values since the mark; TUPLE1 to TUPLE3: of the last `count` values."""
        values = self._since_mark() if count is None else [self.stack.pop() for _ in range(count)][::-1]
        self.stack.append(tuple(values))

    def push_name(self, name: str) -> None:
        """GLOBAL: push the name of a function or class, if it is one of those that batches need."""
        self.stack.append(self._allowed(name))

    def push_stacked_name(self, _: Any) -> None:
        """STACK_GLOBAL: the same, with module and name on the stack."""
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(self._allowed(f"{module} {name}"))

    def reduce(self, _: Any) -> None:
        """REDUCE: push what a call stands for; nothing is called."""
        arguments, called = self.stack.pop(), self.stack.pop()
        self.stack.append(self._result(called, arguments))

    def build(self, _: Any) -> None:
        """BUILD: fill an array; the state of anything else is ignored."""
        state = self.stack.pop()
        if isinstance(self.stack[-1], _Array):
            self.stack[-1].values = self._values(*state)

    def ignore(self, _: Any) -> None:
        """PROTO, FRAME, STOP: nothing to do."""

    def _since_mark(self) -> list[Any]:
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def _allowed(self, name: str) -> _Name:
        if name not in _NAMES:
            raise InputError(
                f"{self.name} names {name.replace(' ', '.')}, which a batch of CIFAR-10 never needs: refused, not run"
            )
        return _Name(name)

    def _result(self, called: Any, arguments: Any) -> Any:
        """Return what a call stands for: an array to be filled, a type's name, or bytes that were written as text."""
        if called in _ARRAY:
            return _Array()
        if called == "numpy dtype":
            return _Name(_text(arguments[0]))
        if called == "_codecs encode":
            return arguments[0].encode("latin-1")
        if called in _BYTES and not arguments:
            return b""
        raise InputError(f"{self.name} calls {str(called)[:40]!r}: refused, not run")

    def _values(self, _: int, shape: tuple[int, ...], kind: Any, fortran: bool, values: Any) -> NDArray[np.uint8]:
        if kind != "u1":
            raise InputError(f"{self.name} holds an array of {kind}: CIFAR-10's are of bytes, u1")
        flat = np.frombuffer(values.encode("latin-1") if isinstance(values, str) else values, dtype=np.uint8)
        return flat.reshape(shape, order="F" if fortran else "C")


_PUSHED = (  # instructions whose argument is a value
    *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "STRING", "INT", "LONG"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1", "LONG4"),
)
_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(_PUSHED, _Machine.push),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), _Machine.ignore),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET", "GET"), _Machine.get),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "MARK": lambda machine, _: machine.push(_MARK),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "TUPLE": _Machine.make_tuple,
    "TUPLE1": partial(_Machine.make_tuple, count=1),
    "TUPLE2": partial(_Machine.make_tuple, count=2),
    "TUPLE3": partial(_Machine.make_tuple, count=3),
    "GLOBAL": _Machine.push_name,
    "STACK_GLOBAL": _Machine.push_stacked_name,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}


def _key(value: Any) -> Any:
    """Return the key of a dict if it is a text or number: hashing tuples in tuples may overflow the stack."""
    if not isinstance(value, str | bytes | int | None):
        raise ValueError("a key is no text")
    return value


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
