"""LLVM: compile a module's source to functions in memory, also to built-in functions of CPython."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import platform
import sys
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from adbench.sealed_folder import SealedFolder
from adbench.tape.core.rule import TapeError


class LLVMRefusedError(TapeError):
    """LLVM refused the generated code, which is a bug."""


def _refused(error: Exception) -> LLVMRefusedError:
    return LLVMRefusedError(f"LLVM refused the code: {' '.join(str(error).split())[:300]}")


@functools.cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@functools.cache
def processor() -> tuple[str, str]:
    """LLVM's names of this processor and its features."""
    _target()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


IS_CLOSE = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether a module's code and constants lie within 2 GiB, so that instructions are shorter and LLVM is faster."""


def machine_for(level: int) -> Any:
    """A target machine for this processor, at level 0 to 3."""
    name, features = processor()
    model = {"reloc": "pic", "codemodel": "small"} if IS_CLOSE else {"codemodel": "jitdefault"}
    return _target().create_target_machine(cpu=name, features=features, opt=level, jit=True, **model)


def _parsed(text: str, machine: Any, level: int) -> Any:
    """LLVM's module, optimised to this level."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise _refused(error) from error
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if level > 0:
        optimise(module, machine, level)
    return module


def optimised(text: str, *, level: int) -> tuple[str, str]:
    """The optimised module, in LLVM's and in this processor's assembly language."""
    machine = machine_for(level)
    module = _parsed(text, machine, level)
    return str(module), str(machine.emit_assembly(module))


def object_code(text: str, level: int) -> bytes:
    """The object code of a module. Raises LLVMRefusedError."""
    machine = machine_for(level)
    module = _parsed(text, machine, level)
    try:
        return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise _refused(error) from error


def _cached_object_code(text: str, level: int, cache: SealedFolder | None) -> bytes:
    """The object code, from the cache if possible."""
    if cache is None:
        return object_code(text, level)
    decisive = text, level, processor(), llvm.llvm_version_info, llvm.get_process_triple()
    name = f"{hashlib.sha256(repr(decisive).encode()).hexdigest()}.code"
    code = cache.get(name)
    if code is None:
        code = object_code(text, level)
        cache.put(name, code)
    return code


class Loaded:
    """Functions in memory; they live as long as this object.

    environment   objects whose addresses the code reads, kept alive here
    cache         of object code on disk, if any
    """

    def __init__(self, text: str, environment: list[Any], *, level: int, cache: SealedFolder | None = None) -> None:
        code = _cached_object_code(text, level, cache)
        try:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine_for(level), IS_CLOSE or None)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
        except RuntimeError as error:
            raise _refused(error) from error
        self._environment = environment
        self._table = (ctypes.c_void_p * max(len(self._environment), 1)).from_address(
            self._engine.get_global_value_address("environment")
        )
        for k, thing in enumerate(self._environment):
            self._table[k] = address_of(thing)

    def replace(self, slot: int, thing: Any) -> None:
        """Replace an object of the environment; the old one stays alive."""
        self._environment.append(thing)
        self._table[slot] = address_of(thing)

    def address(self, name: str) -> int:
        """Where a function is."""
        return int(self._engine.get_function_address(name))


class Object:
    """A Python object to pass by its own address, even if it is a number or an array."""

    def __init__(self, value: Any) -> None:
        self.value = value


def address_of(thing: Any) -> int:
    """The address for the code: of an array's data, or of another object. A number is already an address."""
    if isinstance(thing, np.ndarray):
        return int(thing.ctypes.data)
    if isinstance(thing, Object):
        return id(thing.value)
    return thing if type(thing) is int else id(thing)


def optimise(module: Any, machine: Any, level: int) -> None:
    """Run the optimisation passes that pay here; the program has no dead or duplicate operations."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    if level > 2:
        manager = builder.getModulePassManager()
    else:
        manager = llvm.create_new_module_pass_manager()
        manager.add_sroa_pass()
        manager.add_simplify_cfg_pass()
        if level > 1:
            manager.add_instruction_combine_pass()
            manager.add_new_gvn_pass()
            manager.add_simplify_cfg_pass()
    manager.run(module, builder)


TAKES_ONE_OBJECT, TAKES_ARRAY = 0x8, 0x80  # METH_O, METH_FASTCALL


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _definition(name: str, address: int, takes: int) -> int:
    """The address of a new PyMethodDef. It is never freed, because Python reads it up to the end of the process."""
    method = _MethodDef(name.encode(), address, takes, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    return ctypes.addressof(method)


def builtin_function(name: str, address: int, takes: int, owner: Any = None) -> Any:
    """A function; the code gets its owner, which it keeps alive, as first argument."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return new(_definition(name, address, takes), None if owner is None else id(owner), None)


def builtin_method(owner: type, name: str, address: int) -> Any:
    """A method of a class with one argument."""
    new = ctypes.pythonapi.PyDescr_NewMethod
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return new(owner, _definition(name, address, TAKES_ONE_OBJECT))
