"""What a user would pick instead of transpose; bench/baselines/op_baselines.py says what the tables are."""

import math


def transpose_of(x):
    return x.mT.contiguous()


def into(case):
    x, y = case.many("x", "y")
    return [lambda: (y.copy_(x.mT),)]


def order_of(rank, number):
    """Which of a rank's orders, sorted as words are: oracle.h's."""
    left, order = list(range(rank)), []
    for d in range(rank, 0, -1):
        at, number = divmod(int(number) % math.factorial(d), math.factorial(d - 1))
        order.append(left.pop(at))
    return order


def permute_of(x, order):
    return x.permute(order).contiguous()


def order_in(case):
    return order_of(case.get("x").dim(), case.parameter("order", 1))


def permute_into(case):
    (x, y), order = case.many("x", "y"), order_in(case)
    return [lambda: (y.copy_(x.permute(order)),)]


PYTORCH = {
    "permute": lambda c: (permute_of, [c.get("x"), order_in(c)]),
    "transpose": lambda c: (transpose_of, [c.get("x")]),
}
OUT = {"transpose": into, "permute": permute_into}
