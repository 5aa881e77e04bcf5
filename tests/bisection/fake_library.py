"""Wheels and commits of a tiny AD library, with a planted wrong derivative, slowdown or broken requirement."""

import zipfile
from pathlib import Path

BACKEND = '''"""The library fakead."""
import fakead
from adbench import Unsupported

REQUIRES = ("fakead",)


def prepare(operator, f, args, wrt):
    if operator == "value":
        return f
    if operator == "gradient":
        return lambda x: (fakead.gradient(x),)
    raise Unsupported("only value and gradient")
'''

RIGHT = "1 / (1 + np.exp(-x))"
WRONG = "x / (1 + np.exp(-x))"


def source(formula: str = RIGHT, repeats: int = 100) -> str:
    """The text of fakead: the gradient of softplus, in time proportional to the repeats."""
    loop = f"    for _ in range({repeats}):\n        g = {formula}\n    return g\n"
    return f"import numpy as np\n\n\ndef gradient(x):\n{loop}"


def wheel(folder: Path, version: str, text: str = "", requires: str = "", name: str = "fakead") -> Path:
    """A wheel that pip can install."""
    folder.mkdir(parents=True, exist_ok=True)
    path, about = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": text or source(),
        f"{about}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in files) + f"{about}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return path
