"""Reads the batch files of CIFAR-10's Python version, which are pickles, without ever running one.

A pickle is a program for a small stack machine. Unpickling runs it, and it may call anything. Here the program is
only read: `pickletools.genops` lists its instructions, and the few that such files need (dicts, lists, tuples,
strings, numbers, and one array of bytes) are followed on a stack of plain values. A name of a function is a text,
never looked up; any other instruction or name is refused.
"""

from __future__ import annotations

import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

_MARK = object()
_PUSHED = {  # instructions whose argument is a value
    *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "STRING", "INT", "LONG"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1", "LONG4"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NEW = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_NOTHING = {"PROTO", "FRAME", "STOP"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_ARRAY = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
_BYTES = ("__builtin__ bytes", "builtins bytes")
_NAMES = (*_ARRAY, *_BYTES, "numpy ndarray", "numpy dtype", "_codecs encode")


class _Name(str):
    """A function's or class's name as the file gives it; nothing behind it is ever touched."""


class _Array:
    values: NDArray[np.uint8] | None = None


def read_batch(file: bytes, name: str) -> dict[str, Any]:
    """The dict that a batch file holds; its arrays are of uint8. `name` is what errors call the file."""
    machine = _Machine(name)
    try:
        for opcode, argument, _ in pickletools.genops(file):
            machine.step(opcode.name, argument)
        (held,) = machine.stack
        pairs = {_text(key): value.values if isinstance(value, _Array) else value for key, value in held.items()}
    except InputError:
        raise
    except Exception as problem:  # an instruction that does not fit the stack, or bytes that are no instruction
        kind = type(problem).__name__
        raise InputError(f"{name} is no batch of CIFAR-10 ({kind} where it was read): get it again") from None
    return pairs


class _Machine:
    """The stack, the memo, and what each instruction does to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def step(self, code: str, argument: Any) -> None:
        """Follows one instruction."""
        stack = self.stack
        if code in _PUSHED:
            stack.append(argument)
        elif code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code in _NEW:
            stack.append(_NEW[code]())
        elif code == "MARK":
            stack.append(_MARK)
        elif code in ("BINPUT", "LONG_BINPUT", "PUT"):
            self.memo[argument] = stack[-1]
        elif code == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif code in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self.memo[argument])
        elif code == "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        elif code == "APPENDS":
            values = self._since_mark()
            stack[-1].extend(values)
        elif code in ("SETITEM", "SETITEMS"):
            values = self._since_mark() if code == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(values[::2], values[1::2], strict=True))
        elif code in _TUPLES:
            values = [stack.pop() for _ in range(_TUPLES[code])][::-1]
            stack.append(tuple(values))
        elif code == "TUPLE":
            stack.append(tuple(self._since_mark()))
        elif code == "GLOBAL":
            stack.append(self._allowed(argument))
        elif code == "STACK_GLOBAL":
            what, module = stack.pop(), stack.pop()
            stack.append(self._allowed(f"{module} {what}"))
        elif code == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            stack.append(self._made(called, arguments))
        elif code == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], _Array):
                stack[-1].values = self._filled(*state)
        elif code not in _NOTHING:
            raise InputError(f"{self.name} has the instruction {code}, which a batch of CIFAR-10 never needs: refused")

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

    def _made(self, called: Any, arguments: Any) -> Any:
        """What a call stands for: an array to be filled, a type's name, or bytes that were written as text."""
        if called in _ARRAY:
            return _Array()
        if called == "numpy dtype":
            return _Name(_text(arguments[0]))
        if called == "_codecs encode":
            return arguments[0].encode("latin-1")
        if called in _BYTES and not arguments:
            return b""
        raise InputError(f"{self.name} calls {str(called)[:40]!r}: refused, not run")

    def _filled(self, _: int, shape: tuple[int, ...], kind: Any, fortran: bool, values: Any) -> NDArray[np.uint8]:
        if kind != "u1":
            raise InputError(f"{self.name} holds an array of {kind}: CIFAR-10's are of bytes, u1")
        flat = np.frombuffer(values.encode("latin-1") if isinstance(values, str) else values, dtype=np.uint8)
        return flat.reshape(shape, order="F" if fortran else "C")


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
