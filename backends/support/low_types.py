"""Arrays of a type below float64: a library's functions create them from float64 numbers."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from adbench import Namespace

CREATE = ("asarray", "eye", "full", "linspace", "ones", "zeros")

WIDER = {"float32": ("float64",), "bfloat16": ("float64", "float32"), "float16": ("float64", "float32")}


def create_in(dtype: str, xp: Namespace, convert: Callable[[Any], Any]) -> None:
    """Let the functions of `xp` that create arrays return this type instead of a wider one; `convert(array)` does."""

    def narrow(create: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(create)
        def created(*args: Any, **options: Any) -> Any:
            array = create(*args, **options)
            return convert(array) if str(array.dtype).rpartition(".")[2] in WIDER[dtype] else array

        return created

    vars(xp).update({name: narrow(getattr(xp, name)) for name in CREATE})
