"""Bad input: what is wrong where, and what to do about it. The command line prints it and exits with 2."""

from __future__ import annotations


class InputError(ValueError):
    """`place` is an option, file or column; `remedy` says what to write or do instead."""

    def __init__(self, place: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{place}: {problem}" + (f"; {remedy}" if remedy else ""))
        self.place, self.problem, self.remedy = place, problem, remedy
