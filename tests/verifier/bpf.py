"""A classic-BPF interpreter that knows what seccomp filters use here, and no more.

It refuses what the kernel's checker would refuse, so a program that runs here also installs.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

LOAD, AND, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
MAX_INSTRUCTIONS = 4096
_JUMPS = {
    JUMP_EQ: lambda accumulator, operand: accumulator == operand,
    JUMP_GE: lambda accumulator, operand: accumulator >= operand,
    JUMP_SET: lambda accumulator, operand: accumulator & operand != 0,
}
_DATA = struct.Struct("<IIQ6Q")
"""struct seccomp_data: nr, arch, instruction pointer, args."""
_ACTION_MASK = 0xFFFF0000


class Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    operand: int


class Malformed(Exception):
    """The kernel would not install this program."""


def check(program: bytes) -> list[Instruction]:
    """The instructions of a program that the kernel would install."""
    if not program or len(program) % 8:
        raise Malformed("not a whole number of instructions")
    instructions = [Instruction(*fields) for fields in struct.iter_unpack("<HBBI", program)]
    if len(instructions) > MAX_INSTRUCTIONS:
        raise Malformed("too many instructions")
    for at, (code, if_true, if_false, operand) in enumerate(instructions):
        if code == LOAD:
            if operand % 4 or operand + 4 > _DATA.size:
                raise Malformed(f"{at}: a load from outside the call's data")
        elif code in _JUMPS:
            if at + 1 + max(if_true, if_false) >= len(instructions):
                raise Malformed(f"{at}: a jump past the end")
        elif code not in (AND, RETURN):
            raise Malformed(f"{at}: unknown instruction {code:#x}")
    if instructions[-1].code != RETURN:
        raise Malformed("the last instruction does not return")
    return instructions


def call(nr: int, arch: int, arguments: Iterable[int] = ()) -> bytes:
    """A system call as a filter sees it."""
    six = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    return _DATA.pack(nr, arch, 0, *six)


def run(instructions: list[Instruction], data: bytes) -> int:
    """What one filter returns. Jumps only go forward, so it ends."""
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, operand = instructions[at]
        at += 1
        if code == RETURN:
            return operand
        if code == LOAD:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == AND:
            accumulator &= operand
        else:
            at += if_true if _JUMPS[code](accumulator, operand) else if_false


def decide(filters: Iterable[list[Instruction]], data: bytes) -> int:
    """What the kernel does under several filters, oldest first: the action that is lowest as a signed number wins."""
    returned = [run(instructions, data) for instructions in filters]
    return min(reversed(returned), key=_rank)


def _rank(value: int) -> int:
    action = value & _ACTION_MASK
    return action - 2**32 if action >= 2**31 else action
