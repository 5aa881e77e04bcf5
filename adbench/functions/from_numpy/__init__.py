"""Functions of numpy, scipy, math and adbench.tape in the oracle's namespace, by their names there.

`ELEMENTWISE` has functions of numbers by their short name, `FUNCTIONS` all others by their full name. The first
argument of each is `xp`, the oracle's namespace; arrays are numpy arrays of its numbers. Other functions run as the
namespace's function of that name, or as numpy's code on arrays of objects.
"""

from adbench.functions.from_numpy import array_functions, densities_by_name, matrix_functions  # noqa: F401  # they register
from adbench.functions.from_numpy.array_functions import CREATION
from adbench.functions.from_numpy.name_table import FUNCTIONS

__all__ = ["CREATION", "FUNCTIONS"]
