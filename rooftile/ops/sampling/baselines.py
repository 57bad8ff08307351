"""What a user would pick instead of top_k and sample; bench/baselines/op_baselines.py says what the tables are. A draw has
numbers of its own, so that nothing is returned to be compared."""

import torch


def top_k(case):
    k = int(case.parameter("k", 1))
    return (lambda x: tuple(torch.topk(x, k, -1)), [case.get("x")])


def sample(case):
    """As generation loops write it: a sort where top_p cuts, and a multinomial draw."""
    logits, temperature = case.get("logits"), case.parameter("temperature", 1)
    k, p = int(case.parameter("top_k", 0)), case.parameter("top_p", 1)
    if case.parameter("min_p", 0):
        return []

    def run():
        if temperature == 0:
            logits.argmax(-1)
            return (None,)
        its = logits.float() / temperature
        if k:
            its = its.masked_fill(its < torch.topk(its, k, -1).values[..., -1:], -torch.inf)
        if p < 1:
            ordered, order = torch.sort(its, -1)
            cut = ordered.softmax(-1).cumsum(-1) <= 1 - p
            cut[..., -1:] = False
            its = its.masked_fill(cut.scatter(-1, order, cut), -torch.inf)
        torch.multinomial(its.softmax(-1).reshape(-1, its.shape[-1]), 1)
        return (None,)

    return [run]


PYTORCH = {"top_k": top_k}
OUT = {"sample": sample}
