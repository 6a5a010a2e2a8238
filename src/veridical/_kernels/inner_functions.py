"""Functions that are only ever compiled into a kernel, not on their own.

Numba treats every compiled function as something that Python may call: it is optimised, translated to machine code
and given wrappers for Python and C, and then the kernel that calls it is optimised again with a copy of it inside.
For truth discovery that was more than half of the time to compile.  Here such a function stops at the intermediate
representation; optimisation happens once, in the kernel.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

#: The versions of Numba whose internals are known to work like this; others compile everything, which is only slower.
_FIRST_KNOWN, _FIRST_UNKNOWN = (0, 61), (0, 69)


#: What is called in place of the function from Python: it sets a TypeError and returns NULL.
_RAISE_TYPE_ERROR = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value


class _CodegenWithoutEnvironment:
    """A code generator that sets no environment: the function's address, where it would go, does not exist."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the environment holds Python objects, and inner functions use none."""


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of one function, neither optimised nor translated, and the functions that it calls beside it."""

    _shared_module: Any

    @property
    def codegen(self) -> Any:
        return _CodegenWithoutEnvironment(self._codegen)

    def add_llvm_module(self, module: Any) -> None:
        self._final_module.link_in(module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int | None:
        self._ensure_finalized()
        return _RAISE_TYPE_ERROR

    def _get_module_for_linking(self) -> Any:
        """The function and all that it calls, for the kernel that they become part of."""
        self._ensure_finalized()
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in _called_by(self):
                inner = isinstance(library, _InnerLibrary)
                module.link_in(library._final_module if inner else library._get_module_for_linking(), preserve=True)
            for function in module.functions:
                if not function.is_declaration and function.linkage == Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = module
        return self._shared_module


def _called_by(library: _InnerLibrary) -> list[Any]:
    """Every library that the code of ``library`` needs, once."""
    needed: dict[Any, None] = {}
    waiting = list(library._linking_libraries)
    while waiting:
        other = waiting.pop()
        if other not in needed:
            needed[other] = None
            waiting += other._linking_libraries if isinstance(other, _InnerLibrary) else []
    return list(needed)


class _InnerCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, writing into an :class:`_InnerLibrary`."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        super().__init__(typingctx, targetctx, _InnerLibrary(targetctx.codegen(), "inner"), *arguments)


_VERSION = tuple(int(part) for part in numba.__version__.split(".")[:2])

INNER_OPTIONS: dict[str, Any] = {}
if _FIRST_KNOWN <= _VERSION < _FIRST_UNKNOWN:
    INNER_OPTIONS |= {"pipeline_class": _InnerCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
