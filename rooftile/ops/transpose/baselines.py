"""What a user would pick instead of transpose; bench/baselines/op_baselines.py says what the tables are."""


def transpose_of(x):
    return x.mT.contiguous()


def into(case):
    x, y = case.many("x", "y")
    return [lambda: (y.copy_(x.mT),)]


PYTORCH = {"transpose": lambda c: (transpose_of, [c.get("x")])}
OUT = {"transpose": into}
