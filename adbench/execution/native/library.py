"""The description of a C++ library in its backend's file: the place of its headers, and the header that calls it."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from adbench.catalog.discovery import builtin_folder
from adbench.execution.native import build
from adbench.execution.native.native_call import GRADIENTS, ArgumentLayout, NativeNumbers, NativeOperator, layout
from adbench.execution.native.shared_object import Opened, copied, shared
from adbench.model.backend import Call, Operator
from adbench.model.case import Case
from adbench.model.errors import Unsupported


@dataclass(frozen=True)
class CppLibrary:
    """A C++ library, called through a header that defines `template <class F> struct Library` (see function.hpp).

    header      that header's path
    needs       a header of the library, by its name in #include; "" without a library
    prefixes    folders with `include` and `lib`, searched before the compiler's folders: `$ADEPT_HOME` for an
                environment variable, `httpstan:httpstan` for a folder of an installed distribution, or a path
    include     the folder of headers in a prefix
    get         how to get the library, as one command if possible
    flags       further flags for the compiler and the linker
    links       libraries to link, by name
    archives    libraries to link from archives, if present, so that each unit has its own state
    common      whether the header has a part independent of the case, within #ifdef ADBENCH_COMMON, compiled once
    precompile  whether the header is slow enough to be worth precompiling
    by_hand     whether to call the C++ implementation's gradient by hand
    variant     a number for the header's `Library`: another way to call it
    texts       a folder of the backend's sources, idiomatic for its library, instead of the cases' C++
                implementations
    private     settings for the library, by file name, if it has state that calls must not share: each
                prepared call then loads its own copy
    """

    header: Path
    needs: str = ""
    prefixes: tuple[str, ...] = ()
    include: str = "include"
    get: str = ""
    flags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    common: bool = False
    precompile: bool = False
    by_hand: bool = False
    variant: int = 0
    texts: Path | None = None
    private: Mapping[str, str] | None = field(default=None, hash=False)  # dicts are not hashable

    @property
    def name(self) -> str:
        """The name of the library's header."""
        return self.header.stem

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """FUNCTIONS of a backend with its own sources: they are in C++, so these are never called."""
        return {path.stem: _in_cpp for path in sorted(self.texts.glob("*.hpp"))} if self.texts else {}

    def as_variant(self, number: int) -> CppLibrary:
        """This library with another way to call it."""
        return replace(self, variant=number)

    def to_native(self, leaf: Any) -> Any:
        """A copy in row-major order, at a fixed address."""
        return np.array(leaf, dtype=np.float64, order="C")

    def to_numpy(self, result: Any) -> Any:
        """The arrays of a call's result."""
        return result.parts() if isinstance(result, NativeNumbers) else np.asarray(result)

    def prepare(self, operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Call:
        """call(*args) of the case's C++ implementation.

        Raises Unsupported if there is no such implementation, no compiler or no library, and BuildError if the
        implementation does not compile.
        """
        text = self.text_of(getattr(f, "case", None))

        def open_for(sizes: ArgumentLayout) -> Opened:
            unit = self.unit(f, text, sizes, wrt, operator)
            name = f"{self.name} on {text.name}"
            if self.private is None:
                return Opened(name, shared(unit), sizes.shapes, self.variant, unload=False)
            return Opened(name, copied(unit, self.private), sizes.shapes, self.variant, unload=True)

        lacking = f"{text.name} has no {operator} by hand" if self.by_hand else f"{self.name} has no {operator}"
        return NativeOperator(open_for, operator, args, wrt, lacking).call()

    def build(self, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> None:
        """Compile the shared object that `prepare` will load for these inputs."""
        self.unit(f, self.text_of(getattr(f, "case", None)), layout(args), wrt, "gradient")

    def text_of(self, case: Case | None) -> Path:
        """The C++ source of a case: the library's own, or the case's C++ implementation. Raises Unsupported if both are
        missing."""
        if case is None:
            raise Unsupported("a C++ library needs the case's C++ implementation; this function has no case")
        there = [self.texts / f"{name}.hpp" for name in case.texts] if self.texts else [case.twin]
        texts = [text for text in there if text is not None and text.is_file()]
        if not texts:
            raise Unsupported(f"no C++ implementation: there is no {case.texts[-1]}.hpp next to {Path(case.file).name}")
        return texts[0]

    def unit(self, f: Any, text: Path, sizes: ArgumentLayout, wrt: tuple[int, ...], operator: Operator) -> Path:
        """The shared object of a source for inputs of this layout, differentiated in `wrt`, that has the operator.

        For the case's own active inputs it has every operator, because others will be needed later.
        For other inputs, used only by relations between calls, it has the gradient alone.
        """
        place = self.found()
        active, own = mask(wrt), mask([f.names.index(name) for name in f.case.wrt])
        ours = build.with_included(native_headers() / "exports.hpp", [])
        depends = [*place.depends, *ours, *build.with_included(text, [native_headers()])]
        common = (self._common(place),) if self.common else ()
        every = active == own or operator not in GRADIENTS

        def unit(*, every: bool) -> build.Unit:
            return build.Unit(
                text=unit_text(sizes.kinds, active, own if self.by_hand else active, every=every),
                options=(*place.options, f'-DADBENCH_TWIN="{text}"'),
                links=(*map(str, common), *place.links),
                depends=(*depends, *map(str, common)),
                title=f"{self.name} of {text.stem}",
            )

        wanted = unit(every=every or build.cached(unit(every=True)) is not None)
        try:
            return build.built(wanted, partial(self._precompiled, place))
        except build.BuildError as refusal:
            if self._is_to_blame(f, text, sizes, wrt):
                raise Unsupported(str(refusal)) from refusal
            raise

    def _is_to_blame(self, f: Any, text: Path, sizes: ArgumentLayout, wrt: tuple[int, ...]) -> bool:
        """Whether a source that does not compile with the library compiles without it, so that the library lacks a
        part."""
        if not self.needs or self.texts:
            return False
        try:
            CppLibrary(native_headers() / "cpp_plain.hpp").unit(f, text, sizes, wrt, "value")
        except build.BuildError:
            return False
        return True

    def found(self) -> LibraryPlace:
        """The place of the library. Raises Unsupported with the searched folders and how to get it."""
        return _found(self, tuple(map(_prefix, self.prefixes)))

    def _common(self, place: LibraryPlace) -> Path:
        text = "#define ADBENCH_COMMON\n#include ADBENCH_LIBRARY\n"
        return build.built(build.Unit(text, place.options, (), place.depends, self.name, suffix=".o"))

    def _precompiled(self, place: LibraryPlace) -> Path | None:
        if not self.precompile:
            return None
        return build.precompiled(build.Unit("#include ADBENCH_LIBRARY\n", place.options, (), place.depends, self.name))


@dataclass(frozen=True)
class LibraryPlace:
    """The place of a library: options for the compiler and the linker, and its version."""

    options: tuple[str, ...]
    links: tuple[str, ...]
    depends: tuple[object, ...]
    include: Path | None = None  # the folder of its headers; None without a library


def mask(positions: Sequence[int]) -> int:
    """A bit for each of these inputs."""
    return sum(1 << position for position in set(positions))


def unit_text(kinds: Sequence[str], active: int, own: int, *, every: bool) -> str:
    """The C++ source that joins a library's header to a case's C++ implementation.

    Both are macros, because their paths must not change the source.

    active   the mask of the active inputs
    own      the mask of the case's own active inputs, for its gradient by hand
    every    whether to build all operators, or the gradient alone
    """
    return (
        "#include ADBENCH_LIBRARY\n"
        "#include ADBENCH_TWIN\n"
        '#include "function.hpp"\n'
        f"using Unit = adbench::Function<{active}u, {own}u, {', '.join(kinds)}>;\n"
        f"constexpr bool every_operator = {str(every).lower()};\n"
        '#include "exports.hpp"\n'
    )


def native_headers() -> Path:
    """The folder of headers that every unit includes."""
    return builtin_folder("backends") / "native"


@cache
def _found(library: CppLibrary, prefixes: tuple[Path | None, ...]) -> LibraryPlace:
    """`prefixes` are the library's current ones: a result stays cached until they change."""
    build.compiler()  # its error names the package to install
    ours = [f"-I{native_headers()}", f'-DADBENCH_LIBRARY="{library.header}"', *library.flags]
    texts = build.with_included(library.header, [native_headers()])
    if not library.needs:
        return LibraryPlace(tuple(ours), (), tuple(texts))
    looked: list[str] = []
    for written, prefix in zip(library.prefixes, prefixes, strict=True):
        if prefix is not None and (prefix / library.include / library.needs).is_file():
            return _place(library, ours, texts, prefix / library.include, prefix)
        if prefix is not None and written.startswith("$"):  # no other copy may replace the named one
            header = f"{library.include}/{library.needs}"
            raise Unsupported(
                f"{written} is {prefix}, which has no {header}; set it to a folder with that header, or unset it"
            )
        looked.append(written if prefix is None else str(prefix / library.include))
    for folder in build.include_folders():
        if (folder / library.needs).is_file():
            return _place(library, ours, texts, folder, None)
        looked.append(str(folder))
    raise Unsupported(f"{library.needs} was not found in {', '.join(looked)}; {library.get}")


def _place(library: CppLibrary, ours: list[str], texts: list[str], include: Path, prefix: Path | None) -> LibraryPlace:
    folders = [prefix / name for name in ("lib", "lib64") if (prefix / name).is_dir()] if prefix else []
    options = [*ours, *([f"-I{include}"] if prefix else [])]
    search = [option for folder in folders for option in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
    archives = [build.archive(name, folders) or f"-l{name}" for name in library.archives]
    links = [*search, *archives, *(f"-l{name}" for name in library.links)]
    header = (include / library.needs).stat()
    depends = (*texts, *library.flags, *links, header.st_size, header.st_mtime_ns)
    return LibraryPlace(tuple(options), tuple(links), depends, include)


def _prefix(written: str) -> Path | None:
    """The folder of an entry of `prefixes`; None if the variable or distribution is missing."""
    if written.startswith("$"):
        name, _, below = written[1:].partition("/")
        return Path(os.environ[name], below) if os.environ.get(name) else None
    distribution, colon, below = written.partition(":")
    if not colon:
        return Path(written)
    try:
        return Path(str(importlib.metadata.distribution(distribution).locate_file(below)))
    except importlib.metadata.PackageNotFoundError:
        return None


def _in_cpp(xp: Any, **inputs: Any) -> Any:
    raise Unsupported("this implementation is in C++ and cannot be called from Python")
