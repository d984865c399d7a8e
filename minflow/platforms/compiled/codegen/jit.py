"""Compile this package's kernels by numba and LLVM; neither is needed once the compile cache has them.

Importing numba takes half a second. A process that finds all kernels in the cache
(`platforms/compiled/compile_cache.py`) skips it: numba's names are then bound to a stub (`NumbaStub`).

numba infers types and emits LLVM IR (`KernelCompiler`); LLVM then compiles many functions as one module
(`compile_module`). numba's own pipeline would compile each function separately, and again in each caller. Read next:
`llvm.py`.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import binding, ir as ir

from .. import compile_cache


class NumbaStub:
    """Stub for numba's names if nothing is compiled: it can be called, subclassed, and used as a decorator."""

    def __init__(self, *arguments: object, **named: object):
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **named: object) -> Any:
        return self

    def __mro_entries__(self, bases: tuple) -> tuple:
        return (NumbaStub,)


COMPILES = (
    not compile_cache.load() or "numba" in sys.modules
)  # a program that imports numba may compile tasks of its own
numba: Any
float32: Any
float64: Any
intrinsic: Any
types: Any
if COMPILES:
    import numba
    import numba.extending
    from numba.core.codegen import CodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
    from numba.core.datamodel.models import PrimitiveModel as PrimitiveModel
    from numba.core.typing import Context
    from numba.extending import (
        lower_builtin as lower_builtin,
        register_model as register_model,
        type_callable as type_callable,
    )

    float32, float64, types, intrinsic = numba.float32, numba.float64, numba.types, numba.extending.intrinsic
else:
    numba = float32 = float64 = types = intrinsic = NumbaStub()
    lower_builtin = register_model = type_callable = PrimitiveModel = NumbaStub()
    CodeLibrary = CompilerBase = Context = DefaultPassBuilder = LoweringPass = PassManager = register_pass = NumbaStub()

# Passes of numba for features that the kernels do not use: closures, exceptions, reference counting.
UNNEEDED = frozenset(
    """
    AnnotateTypes DeadBranchPrune DumpParforDiagnostics FindLiterallyCalls GenericRewrites IRLegalization
    InlineClosureLikes InlineOverloads LiteralPropagationSubPipelinePass LiteralUnroll MakeFunctionToJitFunction
    NoPythonSupportedFeatureValidation NopythonRewrites RewriteDynamicRaises RewriteSemanticConstants WithLifting
    """.split()
)


class KernelLibrary(CodeLibrary):
    """Code library that only collects the LLVM IR of a function, instead of compiling it."""

    def __init__(self, codegen: Any, name: str):
        super().__init__(codegen, name)
        self.modules: list[str] = []  # LLVM IR
        self.called: list[Any] = []  # libraries of callees: of this class, or compiled by numba itself

    def add_ir_module(self, module: ir.Module) -> None:
        self.modules.append(str(module))

    def add_linking_library(self, library: Any) -> None:
        self.called.append(library)

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # not compiled yet

    def finalize(self) -> None:
        """Do nothing. numba requires this method and the next three, but does not call them here."""

    get_function = get_llvm_str = get_asm_str = finalize


@register_pass(mutates_CFG=False, analysis_only=True)
class KernelLowering(LoweringPass):
    """Register the function with numba, so that others can call it.

    numba identifies it by a C function, which Python never calls.
    """

    _name = "known"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        known_by = state.library.modules.append
        state.targetctx.insert_user_function(known_by, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=known_by)
        return True


class KernelTypingContext(Context):
    """numba's typing context, with a cache of the result type for each function and argument types."""

    FOUND: dict[tuple, Any] = {}

    def __init__(self, context: Any):
        self.__dict__ = context.__dict__

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        if named or not isinstance(function, types.Type):
            return super().resolve_function_type(function, arguments, named)
        key = function, *arguments
        if key not in self.FOUND:
            self.FOUND[key] = super().resolve_function_type(function, arguments, named)
        return self.FOUND[key]


class KernelCompiler(CompilerBase):
    """numba's compiler, up to LLVM IR."""

    def __init__(self, context: Any, target: Any, library: Any, arguments: Any, result: Any, flags: Any, known: Any):
        flags.nrt = False  # no reference counting
        super().__init__(KernelTypingContext(context), target, library, arguments, result, flags, known)

    def define_pipelines(self) -> list:
        self.state.library = KernelLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.flags.no_compile = True
        passes = PassManager("written")
        for one, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if one.__name__ not in UNNEEDED:
                passes.add_pass(one, description)
            if one.__name__ == "NativeLowering":
                passes.add_pass(KernelLowering, "what others call")
        passes.finalize()
        return [passes]


def emits(result: Any, *arguments: Any) -> Callable[[Callable], Any]:
    """Decorates a function that emits LLVM IR, `body(builder, *values)`, so that compiled code can call it.

    result, arguments: types of numba; a body whose result is `types.void` returns None.
    """

    def defined(body: Callable) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            value = body(builder, *values)
            return context.get_dummy_value() if value is None else value

        @functools.wraps(body)
        def typed(context: Any, *_: Any) -> Any:
            return result(*arguments), emit

        # numba takes the number of arguments from here
        names = ["context", *[f"a{i}" for i in range(len(arguments))]]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(typed)

    return defined


# Decorates a function that only compiled code calls.
compiled = numba.njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=KernelCompiler
)
inlined = numba.njit(inline="always")  # decorates a function that is inlined into its callers instead of being compiled
COMPILED_FUNCTIONS: list[CompiledFunction] = []  # functions of this package


class CompiledFunction:
    """Decorates a function of int64 arguments that is called by address; compiled, or loaded from the cache."""

    def __init__(self, function: Callable):
        self.function: Callable = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        if function.__module__.startswith(f"{__package__.rpartition('.')[0]}."):
            COMPILED_FUNCTIONS.append(self)

    @property
    def arguments(self) -> int:
        """Number of arguments of the C function."""
        return self.function.__code__.co_argcount

    def entry(self) -> Callable:
        """The Python function to compile."""
        return self.function

    @functools.cached_property
    def address(self) -> int:
        return (self in COMPILED_FUNCTIONS and compile_cache.ADDRESSES.get(self.name)) or self.compile()

    @functools.cached_property
    def call(self) -> Callable[..., None]:
        """A ctypes function for Python, which releases the GIL. ctypes converts integers to c_void_p the fastest."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * self.arguments)(self.address)

    def compile(self) -> int:
        """Compile now, for this process only."""
        return compile_cache.linked(*compile_module([self]))[self.name]

    def written(self) -> Any:
        """Let numba emit IR of a function with C calling convention."""
        if not COMPILES:
            raise RuntimeError(
                f"{self.name} is not among the compiled kernels: import numba before minflow.platforms.compiled"
            )
        kind = types.void(*[types.int64] * self.arguments)
        return numba.cfunc(kind, error_model="numpy", pipeline_class=KernelCompiler)(self.entry())


def compile_part(part: int) -> None:
    """Compile one part of the compile cache, and save it."""
    collecting = gc.isenabled()
    gc.disable()  # the collector would scan numba's objects again and again: a fifth of the time
    try:
        compiled_module = compile_module(part_of(part))
    finally:
        if collecting:
            gc.enable()
    compile_cache.ADDRESSES.update(compile_cache.linked(*compiled_module))
    compile_cache.save(part, *compiled_module)


def compile_module(codes: Sequence[CompiledFunction]) -> tuple[dict[str, str], bytes, list[str]]:
    """Compile functions into one object file.

    Returns {name of a function: its symbol}, the object code, and the external symbols that it needs: of Python, numba
    and the system.
    """
    written = {code.name: code.written() for code in codes}
    symbols = {name: one.native_name for name, one in written.items()}
    machine, module = compile_cache.target(), binding.parse_assembly("")
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for library in reachable([one._library for one in written.values()]):
        for text in library.modules if isinstance(library, KernelLibrary) else [library.get_llvm_str()]:
            module.link_in(binding.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and function.name not in symbols.values():
            function.linkage = "internal"  # so that functions without callers, or inlined into all of them, are dropped
    # numba's options: vectorize loops, but not straight-line code (SLP)
    options = binding.create_pipeline_tuning_options(3)
    options.loop_vectorization, options.slp_vectorization = True, False
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    others = [
        one.name
        for one in (*module.functions, *module.global_variables)
        if one.is_declaration and not one.name.startswith("llvm.")
    ]
    return symbols, machine.emit_object(module), others


def reachable(libraries: Sequence[Any]) -> list[Any]:
    """Return these libraries and all that they call, each once."""
    reached, coming = dict.fromkeys(libraries), [*libraries]
    while coming:
        more = [one for one in getattr(coming.pop(), "called", ()) if one not in reached]
        reached.update(dict.fromkeys(more))
        coming += more
    return [*reached]


def part_of(part: int) -> list[CompiledFunction]:
    """Return the functions of one part, split by modules.

    Functions of one module share callees, which each process compiles once. Balanced by the size of Python's bytecode.
    """
    files: dict[str, list[CompiledFunction]] = {}
    for code in COMPILED_FUNCTIONS:
        files.setdefault(code.function.__module__, []).append(code)
    all_callees = {name: {one for code in codes for one in callees(code.function)} for name, codes in files.items()}
    parts: list[tuple[list[CompiledFunction], set]] = [([], set()) for _ in compile_cache.PARTS]
    for name in sorted(files, key=lambda name: (-length(all_callees[name]), name)):
        codes, known = min(parts, key=lambda one: length(one[1] | all_callees[name]))
        codes += files[name]
        known |= all_callees[name]
    return parts[part][0]


def callees(function: Callable) -> Iterator[Callable]:
    """Yield a function and all compiled functions that it calls."""
    yield function
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None:
            yield from callees(called)


def length(functions: set[Callable]) -> int:
    """Total bytes of Python bytecode."""
    return sum([len(function.__code__.co_code) for function in functions])
