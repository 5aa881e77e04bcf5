"""Colour the columns of a pattern, so that few products give all entries.

Columns of one colour are added up: one product with a vector of zeros and ones. An entry can be read from such a sum if
no other entry of its row has a column of that colour.

* Jacobians: columns of one colour share no row (a colouring of distance two in the bipartite graph), so every entry can
  be read. The same on the transpose colours rows, for products from the left.
* Hessians are symmetric, so it is enough if each entry can be read in its row or in that of its mirror image. This is a
  *star colouring*: neighbours differ, and each path of four vertices has three colours. An arrow matrix of any size
  needs two colours.

All are greedy: each vertex takes the first colour that is free. A colour set is one integer, with a bit per colour.
`places` checks the result, so an entry is never read from a sum that contains another one.

Source: A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian?", SIAM Review 47 (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = Any
"""A numpy array of integers."""


def colour_columns(rows: Ints, columns: Ints, count: int) -> Ints:
    """A colour for each of `count` columns; no two columns of one colour have entries in one row."""
    if rows.size == 0:
        return np.zeros(count, np.int64)
    fewest = int(np.bincount(rows).max())  # a full row needs as many
    in_turns = np.arange(count) % fewest
    if fewest == count or _can_be_read(rows, in_turns[columns], fewest).all():
        return in_turns  # as for a band
    order = np.argsort(columns, kind="stable")
    listed = rows[order].tolist()
    ends = np.cumsum(np.bincount(columns, minlength=count)).tolist()
    taken = [0] * (int(rows.max()) + 1)
    colours, start = [0] * count, 0
    for j, end in enumerate(ends):
        mine = listed[start:end]
        used = 0
        for row in mine:
            used |= taken[row]
        bit = ~used & (used + 1)  # the lowest bit that is not set
        for row in mine:
            taken[row] |= bit
        colours[j] = bit.bit_length() - 1
        start = end
    return np.array(colours, np.int64)


def colour_symmetric(rows: Ints, columns: Ints, count: int) -> Ints:
    """A star colouring of a symmetric pattern: each entry can be read in its row or in that of its mirror image."""
    if rows.size == 0:
        return np.zeros(count, np.int64)
    plain = colour_columns(rows, columns, count)
    if plain.max() <= 2:
        return plain
    star = _star_colours(rows, columns, count)
    return star if star.max() < plain.max() else plain


def _star_colours(rows: Ints, columns: Ints, count: int) -> Ints:
    """Greedy star colouring, vertices with most neighbours first.

    used[v]    the colours of v's neighbours
    twice[v]   those that occur more than once
    middle[v]  the colours of v's neighbours that have another neighbour of v's colour
    """
    off = rows != columns
    order = np.argsort(rows[off], kind="stable")
    listed = columns[off][order].tolist()
    ends = np.cumsum(np.bincount(rows[off], minlength=count))
    neighbours = [listed[a:b] for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
    bits, used, twice, middle = [0] * count, [0] * count, [0] * count, [0] * count
    first: dict[tuple[int, int], int] = {}
    for v in sorted(range(count), key=lambda v: -len(neighbours[v])):
        free = ~used[v]
        for w in neighbours[v]:
            free &= ~middle[w]
            if twice[v] & bits[w]:
                free &= ~used[w]
        bits[v] = bit = free & -free
        for w in neighbours[v]:
            if used[w] & bit:
                twice[w] |= bit
                middle[v] |= bits[w]
                middle[first[w, bit]] |= bits[w]
            else:
                used[w] |= bit
                first[w, bit] = v
            if twice[v] & bits[w]:
                middle[w] |= bit
    return np.array([bit.bit_length() - 1 for bit in bits], np.int64)


def _can_be_read(rows: Ints, colours: Ints, count: int) -> Any:
    """Whether each entry, in this row and of this colour, is alone in its row with its colour."""
    _, which, repeats = np.unique(rows * count + colours, return_inverse=True, return_counts=True)
    return repeats[which] == 1


def places(rows: Ints, columns: Ints, colours: Ints, *, symmetric: bool = False) -> tuple[Ints, Ints]:
    """For each entry, the colour and the row in which to read it. Raises AssertionError for an invalid colouring."""
    count = int(colours.max(initial=0)) + 1
    alone = _can_be_read(rows, colours[columns], count)
    if not symmetric:
        if not alone.all():
            raise AssertionError("two columns of one colour share a row")
        return colours[columns], rows
    mirrored = _can_be_read(columns, colours[rows], count)
    if not (alone | mirrored).all():
        raise AssertionError("an entry and its mirror image cannot be read")
    return np.where(alone, colours[columns], colours[rows]), np.where(alone, rows, columns)
