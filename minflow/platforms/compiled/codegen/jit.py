"""What this room compiles, and numba, which compiles it; where everything is kept, neither is needed.

To import numba takes half a second. A process that finds all kernels compiled (`platforms/compiled/compile_cache.py`)
does without: what numba is called by in this room's files then stands for nothing.

numba finds types and writes instructions of LLVM (`Writer`); what it has written for many functions LLVM then compiles
as one (`together`). By itself numba would compile each function, and again in each that calls it. Read next: `llvm.py`.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import binding, ir as ir

from .. import compile_cache


class Unneeded:
    """In place of numba's names where nothing is compiled: decorates, is called and derived from, to no effect."""

    def __init__(self, *arguments: object, **named: object):
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **named: object) -> Any:
        return self

    def __mro_entries__(self, bases: tuple) -> tuple:
        return (Unneeded,)


COMPILES = (
    not compile_cache.load() or "numba" in sys.modules
)  # a program that has imported numba may bring code of its own
numba: Any
if COMPILES:
    import numba
    from numba import float32 as float32, float64 as float64, types as types
    from numba.core.codegen import CodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
    from numba.core.datamodel.models import PrimitiveModel as PrimitiveModel
    from numba.core.typing import Context
    from numba.extending import intrinsic as intrinsic, register_model as register_model
else:
    numba = float32 = float64 = types = intrinsic = register_model = PrimitiveModel = Unneeded()
    CodeLibrary = CompilerBase = Context = DefaultPassBuilder = LoweringPass = PassManager = register_pass = Unneeded()

# Passes of numba for what the code here does not have: closures, exceptions, objects that are counted.
UNNEEDED = {
    "AnnotateTypes",
    "DeadBranchPrune",
    "DumpParforDiagnostics",
    "FindLiterallyCalls",
    "GenericRewrites",
    "IRLegalization",
    "InlineClosureLikes",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NoPythonSupportedFeatureValidation",
    "NopythonRewrites",
    "RewriteDynamicRaises",
    "RewriteSemanticConstants",
    "WithLifting",
}


class Written(CodeLibrary):
    """What numba has written of one function, in place of what it would have compiled."""

    def __init__(self, codegen: Any, name: str):
        super().__init__(codegen, name)
        self.modules: list[str] = []  # of LLVM
        self.called: list[Any] = []  # others of this kind, and what numba has compiled of its own

    def add_ir_module(self, module: ir.Module) -> None:
        self.modules.append(str(module))

    def add_linking_library(self, library: Any) -> None:
        self.called.append(library)

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # not yet

    def finalize(self) -> None:
        """Numba has this, and the next three, be there; it does not call them here."""

    get_function = get_llvm_str = get_asm_str = finalize


@register_pass(mutates_CFG=False, analysis_only=True)
class Known(LoweringPass):
    """Other code may call the function, which numba knows by a function of C's, though Python never calls that."""

    _name = "known"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        known_by = state.library.modules.append
        state.targetctx.insert_user_function(known_by, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=known_by)
        return True


class Types(Context):
    """numba's, which finds the type of a result once for each function and types of its arguments."""

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


class Writer(CompilerBase):
    """numba's compiler, as far as LLVM's instructions."""

    def __init__(self, context: Any, target: Any, library: Any, arguments: Any, result: Any, flags: Any, known: Any):
        flags.nrt = False  # nothing is counted
        super().__init__(Types(context), target, library, arguments, result, flags, known)

    def define_pipelines(self) -> list:
        self.state.library = Written(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.flags.no_compile = True
        passes = PassManager("written")
        for one, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if one.__name__ not in UNNEEDED:
                passes.add_pass(one, description)
            if one.__name__ == "NativeLowering":
                passes.add_pass(Known, "what others call")
        passes.finalize()
        return [passes]


# Called by other compiled code alone.
compiled = numba.njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=Writer
)
inlined = numba.njit(inline="always")  # written into who calls it, instead of being compiled apart
CODES: list[Code] = []  # of this room


class Code:
    """Decorates a function of int64 that is called by its address, and that was compiled or is to be."""

    def __init__(self, function: Callable):
        self.function: Callable = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        if function.__module__.startswith(f"{__package__.rpartition('.')[0]}."):
            CODES.append(self)

    @functools.cached_property
    def address(self) -> int:
        return (self in CODES and compile_cache.ADDRESSES.get(self.name)) or self.compile()

    @functools.cached_property
    def call(self) -> Callable[..., None]:
        """For Python, which holds no lock of its own meanwhile. Of integers ctypes makes pointers the soonest."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * self.function.__code__.co_argcount)(self.address)

    def compile(self) -> int:
        """Now, for this process."""
        return compile_cache.linked(*together([self]))[self.name]

    def written(self) -> Any:
        """By numba, to be called by C."""
        if not COMPILES:
            raise RuntimeError(
                f"{self.name} is not among the compiled kernels: import numba before minflow.platforms.compiled"
            )
        kind = types.void(*[types.int64] * self.function.__code__.co_argcount)
        return numba.cfunc(kind, error_model="numpy", pipeline_class=Writer)(self.function)


def compile_part(part: int) -> None:
    """Compile what is to be in a part of what is kept, and keep it."""
    collecting = gc.isenabled()
    gc.disable()  # it would go through all that numba has made, again and again: a fifth of the time
    try:
        found = together(part_of(part))
    finally:
        if collecting:
            gc.enable()
    compile_cache.ADDRESSES.update(compile_cache.linked(*found))
    compile_cache.save(part, *found)


def together(codes: Sequence[Code]) -> tuple[dict[str, str], bytes, list[str]]:
    """name of a function -> what LLVM calls it; one object file of them; what it calls or reads of others: of Python,
    numba, and the system.
    """
    written = {code.name: code.written() for code in codes}
    symbols = {name: one.native_name for name, one in written.items()}
    machine, module = compile_cache.target(), binding.parse_assembly("")
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for library in reached([one._library for one in written.values()]):
        for text in library.modules if isinstance(library, Written) else [library.get_llvm_str()]:
            module.link_in(binding.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and function.name not in symbols.values():
            function.linkage = "internal"  # what nobody calls, or is written into all who call it, is left out
    options = binding.create_pipeline_tuning_options(3)  # numba's: loops become vectors, lines of code do not
    options.loop_vectorization, options.slp_vectorization = True, False
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    others = [
        one.name
        for one in (*module.functions, *module.global_variables)
        if one.is_declaration and not one.name.startswith("llvm.")
    ]
    return symbols, machine.emit_object(module), others


def reached(libraries: Sequence[Any]) -> list[Any]:
    """These, and what they call, each once."""
    found, coming = dict.fromkeys(libraries), [*libraries]
    while coming:
        more = [one for one in getattr(coming.pop(), "called", ()) if one not in found]
        found.update(dict.fromkeys(more))
        coming += more
    return [*found]


def part_of(part: int) -> list[Code]:
    """By files, since the functions of one call the same others, which a process compiles once; what has more
    instructions of Python's takes longer.
    """
    files: dict[str, list[Code]] = {}
    for code in CODES:
        files.setdefault(code.function.__module__, []).append(code)
    all_met = {name: {one for code in codes for one in met(code.function)} for name, codes in files.items()}
    parts: list[tuple[list[Code], set]] = [([], set()) for _ in compile_cache.PARTS]
    for name in sorted(files, key=lambda name: (-length(all_met[name]), name)):
        codes, known = min(parts, key=lambda one: length(one[1] | all_met[name]))
        codes += files[name]
        known |= all_met[name]
    return parts[part][0]


def met(function: Callable) -> Iterator[Callable]:
    """It, and what it calls that is compiled."""
    yield function
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None:
            yield from met(called)


def length(functions: set[Callable]) -> int:
    """Bytes of their instructions for Python."""
    return sum([len(function.__code__.co_code) for function in functions])
