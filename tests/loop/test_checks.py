"""How long the texts of a step take to be checked."""

from redqueen.phases.checks import Checks


def test_seconds_in_which_several_texts_were_checked_count_once_a_kind():
    times = iter([0.0, 1.0, 2.0, 3.0, 10.0, 10.5, 20.0, 20.25])
    checks = Checks(lambda: next(times))

    with checks.of("logic_s", 4), checks.of("math_w", 2), checks.of("logic_s", 3):
        pass
    first = checks.take()
    with checks.of("math_w", 1):
        pass

    assert first == {"logic_s": (7, 10.5), "math_w": (2, 9.0)}
    assert checks.take() == {"math_w": (1, 0.25)}
