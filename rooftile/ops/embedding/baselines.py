"""What a user would pick instead of embedding; bench/baselines/op_baselines.py says what the tables are."""

import torch

F = torch.nn.functional


def look_up(tokens, table):
    return F.embedding(tokens, table)


def look_up_with_places(tokens, table, position_table):
    return F.embedding(tokens, table) + position_table


def forward(case):
    tokens, table, place = case.many("tokens", "table", "position_table")
    return (look_up, [tokens, table], ["y"]) if place is None else (look_up_with_places, [tokens, table, place], ["y"])


PYTORCH = {"embedding": forward}


def backward(case):
    """PyTorch's own kernel: on a GPU it sorts tokens, too, and adds up in f32."""
    if case.get("dposition_table") is not None:
        return []
    tokens, table, dy = case.many("tokens", "table", "dy")
    padding = int(case.parameter("padding_idx", -1))
    run = torch.ops.aten.embedding_dense_backward
    return [lambda: case.ordered(dtable=run(dy, tokens, table.shape[0], padding, False))]


OUT = {"embedding_backward": backward}
