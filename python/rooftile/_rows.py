"""Rows along any dimensions: a call's arrays as views that have them last, and its results brought back."""

import math
import operator


class Rows:
    """Of one call. operands: the signature's; word: what the caller calls the dimensions; move: the framework's moveaxis."""

    def __init__(self, name, operands, arrays, word, dims, keep, move):
        self.operands = {o["name"]: o for o in operands}
        self.keep, self.move = keep, move
        ranked = [n for n in arrays if self.is_of_rows(n)]
        if not ranked:  # the library says what is absent
            self.shape = self.dims = self.last = ()
            return
        self.shape = tuple(arrays[ranked[0]].shape)
        for n in ranked:
            if len(arrays[n].shape) != len(self.shape):
                raise ValueError(f"{name}: {n} has {len(arrays[n].shape)} dimensions, {ranked[0]} has {len(self.shape)}; with "
                                 f"{word}= they have as many")
        self.dims = self.checked(name, word, dims, ranked[0])
        self.last = tuple(range(-len(self.dims), 0))
        #: The result that has one number for each row, where rows keep their dimensions.
        self.kept = tuple(1 if d in self.dims else size for d, size in enumerate(self.shape))
        self.outer = tuple(size for d, size in enumerate(self.shape) if d not in self.dims)

    def is_of_rows(self, n):
        return self.operands[n]["outer"] and self.operands[n]["letters"]

    def checked(self, name, word, dims, first):
        """The dimensions from 0 on, in their order."""
        rank = len(self.shape)
        try:
            given = [operator.index(d) for d in (dims if isinstance(dims, (tuple, list)) else (dims,))]
        except TypeError:
            raise TypeError(f"{name}: {word} is {dims!r}, must be a whole number or several") from None
        for d in given:
            if not -rank <= d < rank:
                must = f"must be from {-rank} to {rank - 1}: {first}" if rank else f"and {first}"
                raise ValueError(f"{name}: {word} is {d}, {must} has {rank or 'no'} dimensions")
        unique = sorted({d % rank for d in given})
        if len(unique) != len(given) or not given:
            raise ValueError(f"{name}: {word} is {dims!r}, must name {'a dimension' if not given else 'each dimension once'}")
        return tuple(unique)

    def given(self, n, array):
        """What the library takes for an operand; several dimensions become one."""
        several = len(self.dims) > 1
        if self.is_of_rows(n):
            array = self.move(array, self.dims, self.last)
            return array.reshape((*self.outer, math.prod(array.shape[len(self.outer):]))) if several else array
        if self.keep and self.operands[n]["role"] == "output" and tuple(array.shape) == self.kept:
            return array.reshape(self.outer)
        return array.reshape((math.prod(array.shape),)) if several and self.operands[n]["letters"] else array

    def result(self, n, array):
        """What the caller gets for an output of the library's."""
        sizes = tuple(self.shape[d] for d in self.dims)
        if self.is_of_rows(n):
            return self.move(array.reshape((*self.outer, *sizes)) if len(sizes) > 1 else array, self.last, self.dims)
        if self.operands[n]["letters"]:  # a weight's gradient
            return array.reshape(sizes)
        return array.reshape(self.kept) if self.keep and self.operands[n]["outer"] else array
